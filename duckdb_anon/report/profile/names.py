"""What the name of a column says of its values: the words of a dozen languages' column names.

Column names are cut into words (`dateOfBirth`, `date_of_birth`, `DATE OF BIRTH`), so that `age` is not found in `page`.
"""

from __future__ import annotations

import re
import unicodedata

_HINTS: tuple[tuple[str, str], ...] = (
    ("fax", r"(tele)?fax( no| number)?"),
    (
        "phone",
        r"(home |work )?(phone|tel|telephone|mobile)( no| number)|"
        r"phone|telephone|tel|mobile|cell|telefon|handy|telefono|movil|telephone|portable|gsm|telefoon|"
        r"mobil|cellulare|komorka|puhelin|telefone|telemovel|celular",
    ),
    ("mail", r"e?mails?|email addresse?s?|mail address|courriel|correo( electronico)?|e ?post|posta elettronica"),
    ("iban", r"iban"),
    ("card number", r"(credit |debit |bank )?card( (no|nr|num|number))?|cc( num| number)|pan"),
    (
        "national id",
        r"ssn|social security( no| number)?|national (id|insurance)( no| number)?|nino|rodne cislo|"
        r"henkilotunnus|nhs( no| number)?|nir|bsn|cpf|curp|pesel|nif|dni|nie|"
        r"personnummer|cpr|fodselsnummer|steuer( ?id| nummer)|codice fiscale|tax (id|no|number)|tin|"
        r"passport( no| number)?",
    ),
    ("medical record number", r"mrn|medical record( no| number)?|patient (id|no|number)|hospital (no|number)"),
    ("health plan number", r"(insurance|policy|plan|member|beneficiary|subscriber) (id|no|number)|versichertennummer"),
    ("account number", r"(bank )?(account|acct|konto)( id| no| number| nummer| num)?"),
    ("license number", r"(drivers? )?(licen[cs]e|certificate)( id| no| number| plate)?"),
    (
        "vehicle number",
        r"vin|plate|number plate|kennzeichen|kenteken|immatriculation|matricula|targa|"
        r"registration plate|vehicle (id|no|number)",
    ),
    ("device number", r"(device|serial)( id| no| number)?|imei|imsi|mac( address)?|idfa|aaid"),
    ("url", r"url|website|web( page| site)?|homepage|link|profile url"),
    ("ip address", r"(ip|ipv4|ipv6|client ip|source ip)( address| addr)?"),
    ("biometric", r"fingerprint|iris|voice ?print|retina|biometrics?|dna|genome"),
    ("photo", r"photo|picture|image|portrait|avatar|face"),
    (
        "name",
        r"(first|last|given|family|middle|full|sur|maiden|user|nick|birth|patient|customer|client|employee|contact)? ?"
        r"names?|surname|lastname|firstname|fullname|username|nachname|vorname|nom|prenom|apellidos?|nombres?|cognome|"
        r"voornaam|achternaam|login|initials|navn|fornavn|etternavn|efternavn|namn|fornamn|efternamn|"
        r"imie( nazwisko)?|nazwisko|"
        r"jmeno|prijmeni|nimi|etunimi|sukunimi|sobrenome|nome|naam",
    ),
    (
        "date of birth",
        r"(date of )?birth ?(date|day)?|dob|birthdate|birthday|born|geburtsdatum|date naissance|"
        r"nacimiento|data nascimento|syntymaaika|fodselsdato|geboortedatum|data nascita",
    ),
    ("year of birth", r"(year of birth|birth year|yob|geburtsjahr)"),
    ("month of birth", r"(month of birth|birth month)"),
    ("postcode", r"(post|postal|zip)( ?code)?|zipcode|postcode|plz|postleitzahl|cap|code postal|codigo postal|"
        r"postnummer|postnr|"
        r"kod pocztowy|psc|postinumero|cep|irsz"),
    (
        "address",
        r"(home |street |mailing |postal |billing |delivery )?address( line)?( \d)?|street( name)?|"
        r"strasse|calle|rue|anschrift|adress?e?|adresa|direccion|domicilio|domicile|indirizzo|endereco|morada|katuosoite|osoite|"
        r"straat|ulica|"
        r"addr( line)?( \d)?",
    ),
    ("coordinate", r"lat|lon|lng|latitude|longitude|coordinates?|geo( ?point| ?location)?|location"),
    (
        "place",
        r"city|town|village|county|district|municipality|region|province|parish|ort|stadt|commune|ciudad|ville|"
        r"citta|comune|cidade|kaupunki|miasto|woonplaats|plaats|gemeente|kommune|kommun|"
        r"puma|tract",
    ),
    ("state", r"state|bundesland|canton|federal state"),
    ("country", r"country( of birth)?|nation|nationality|native country|citizen(ship)?|birth ?place|land|pays|pais"),
    ("age", r"age( group| band| years)?|alter|edad"),
    ("sex", r"sex|gender|geschlecht|sexe|genero"),
    ("ethnicity", r"race|ethnic(ity| group)?|ethnicity|hispan(ic)?|tribe|caste"),
    ("marital status", r"mar(ital)?( ?st(at)?(us)?)?|marst|civil status|familienstand"),
    ("relationship", r"relat(e|ion|ionship)?|household( role| position)?|children|kids|family size"),
    ("education", r"educ(ation)?( num| level| years| d)?|school(ing)?|degree|years of education|bildung"),
    (
        "occupation",
        r"occ(upation)?( code| \d+)?|job( title)?|profession|beruf|work ?class|industry|ind|employer|profissao|ammatti|"
        r"position",
    ),
    ("working hours", r"(u ?hrs ?work|uhrswork|hours( per week)?|wk ?swork)"),
    (
        "income",
        r"income|inc ?wage|incwage|wages?|salary|salaries|earnings|pay|revenue|gehalt|einkommen|capital (gain|loss)|"
        r"credit score|debt|balance|amount|loan|tax|bonus|cost|charges?|price|spend|donations?",
    ),
    (
        "health",
        r"diagnos[ie]s( code)?|dx|icd( ?9| ?10)?|disease|illness|condition|symptoms?|treatment|drug|medication|therapy|"
        r"procedure|allergy|hiv|bmi|blood( type| pressure)?|lab( result| value)?|cholesterol|glucose|smoker|"
        r"pregnan(t|cy)|"
        r"disability|cause of death|mental health|weight|height|prescription",
    ),
    (
        "belief",
        r"religion|relig|faith|church|politic(s|al)?( party| view)?|party|vote|union( member)?|philosophy|"
        r"sexual( orientation)?|orientation",
    ),
    (
        "judicial",
        r"crime|offen[cs]e|conviction|arrest|sentence|criminal( record)?|grade|gpa|test score|"
        r"exam( score)?|rating",
    ),
    ("free text", r"notes?|comments?|remarks?|description|text|message|free ?text|narrative|anamnesis|feedback|memo"),
    ("person key", r"person|patient|subject|member|client|customer|user|employee|student|participant|respondent"),
    (
        "key",
        r""
        r"(row |record |case |order |visit |encounter |event )?(id|no|nr|key|uuid|guid|identifier|number)|index|rowid",
    ),
    ("weight", r"(sample|sampling|survey|person|fnl|perwt|hh)? ?(wgt|wt|weights?)|fnlwgt|perwt"),
    (
        "date",
        r"(\w+ )?(date|day|time|timestamp|datum)|"
        r"(admi(t|ssion|tted)|discharge|death|created|updated|visit)( date| at)?|year",
    ),
)  # fmt: skip
_MORE: tuple[tuple[str, str], ...] = (
    # German, French, Greek and Chinese
    ("phone", r"telefonnummer|handynummer|numero( de)? telephone|τηλεφωνο|κινητο|电话(号码)?|手机号?码?"),
    ("mail", r"邮箱|电子邮件"),
    ("national id", r"(numero( de)? )?securite sociale|personalausweis( ?nummer)?|ausweisnummer"),
    ("national id", r"(sozial|renten)versicherungsnummer|αμκα|αφμ|(αριθμος )?ταυτοτητας?|身份证号?码?|护照号?码?"),
    ("medical record number", r"fallnummer|病历号"),
    ("account number", r"kontonummer|αριθμος λογαριασμου|(银行)?[账帐卡]号"),
    ("name", r"familienname|nom( de)? famille|επωνυμο|ονομα(τεπωνυμο)?|姓名?|名字"),
    ("date of birth", r"geburtstag|date de naissance|ημερομηνια γεννησης|出生日期|生日"),
    ("year of birth", r"annee( de)? naissance|ετος γεννησης|出生年份?"),
    ("postcode", r"τ ?κ|ταχυδρομικος κωδικας|邮编|邮政编码"),
    ("address", r"διευθυνση|οδος|地址|住址"),
    ("place", r"wohnort|kreis|departement|πολη|δημος|νομος|城市|省份?|[区县]"),
    ("country", r"staatsangehorigkeit|nationalite|χωρα|υπηκοοτητα|国籍|国家"),
    ("age", r"ηλικια|年龄"),
    ("sex", r"φυλο|性别"),
    ("ethnicity", r"ethnie|εθνικοτητα|民族"),
    ("marital status", r"etat civil|situation matrimoniale|οικογενειακη κατασταση|婚姻状况"),
    ("education", r"(schul|bildungs)abschluss|ausbildung|diplome|niveau d? ?etudes|εκπαιδευση|μορφωση|学历|教育程度"),
    ("occupation", r"metier|emploi|επαγγελμα|职业"),
    ("income", r"lohn|salaire|revenus?|μισθος|εισοδημα|αποδοχες|工资|收入|薪[水资]"),
    ("health", r"diagnosen?|krankheit|befund|medikament|maladie|diagnostic|traitement"),
    ("health", r"διαγνωση|ασθενεια|νοσος|θεραπεια|诊断|疾病|病名|药物"),
    ("belief", r"konfession|θρησκευμα|θρησκεια|宗教|政治面貌"),
    ("person key", r"pupil|kunde|mitarbeiter|schuler|eleve"),
)
# the last letter of a Greek word is written as in its middle after casefold()
_PATTERNS = tuple(
    (kind, re.compile(rf"(?:{pattern})".replace("\u03c2", "\u03c3"))) for kind, pattern in (*_HINTS, *_MORE)
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_QUALIFIERS = {"the", "my", "his", "her", "main", "current", "primary", "secondary", "new", "old", "is", "has", "flag"}


def words(column: str) -> list[str]:
    """Words of a column's name, in lower case and without accents.

    >>> words("dateOfBirth"), words("UHRSWORK"), words("zip_code2")
    (['date', 'of', 'birth'], ['uhrswork'], ['zip', 'code', '2'])
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", split) if not unicodedata.combining(c))
    return _WORD.findall(plain)


_GROUPS = re.compile(
    r"school|class(room)?|house ?hold|hh|family|store|shop|country|region|city|state|district|area|dep(artmen)?t|"
    r"company|firm|team|branch|site|hospital|clinic|ward|product|item|category|group|station|course|room|vendor|"
    r"supplier"
)


_EVENTS = re.compile(
    r"visit|lab|order|encounter|event|case|claim|invoice|transaction|booking|admission|stay|session|record|row|sample|"
    r"specimen|prescription|ticket|payment|test|exam|appointment|shipment|delivery|aufenthalt|besuch|bestellung|rechnung|"
    r"commande|facture|visite|sejour"
)
_INDIVIDUALS = re.compile(
    r"person|patient|subject|member|client|customer|user|employee|student|participant|respondent|pupil|kunde|mitarbeiter"
)


def names_an_event(column: str) -> bool:
    """Whether a key is that of a visit, an order or another event, which no individual is.

    >>> names_an_event("visit_id"), names_an_event("orderNo"), names_an_event("patient_record_id")
    (True, True, False)
    """
    given = words(column)
    return any(_EVENTS.fullmatch(word) for word in given) and not any(_INDIVIDUALS.fullmatch(word) for word in given)


def names_a_group(column: str) -> bool:
    """Whether a key is that of something that many individuals share.

    >>> names_a_group("school_id"), names_a_group("hhId"), names_a_group("patient_id")
    (True, True, False)
    """
    return any(_GROUPS.fullmatch(word) for word in words(column))


def hinted(column: str) -> str:
    """What a column is called: a kind of value, '' where its name says nothing.

    The whole name counts before its end, the end before its beginning: `patient_name` is a name, `name_of_city` a city.

    >>> hinted("e_mail"), hinted("customer_birth_date"), hinted("page"), hinted("home phone")
    ('mail', 'date of birth', '', 'phone')
    """
    given = [word for word in words(column) if word not in _QUALIFIERS] or words(column)
    while len(given) > 1 and given[-1].isdigit():
        given = given[:-1]
    spans = [given[start:] for start in range(len(given))] + [given[:end] for end in range(len(given) - 1, 0, -1)]
    for span in spans:
        text = " ".join(span)
        for kind, pattern in _PATTERNS:
            if pattern.fullmatch(text) or pattern.fullmatch(text.replace(" ", "")):
                return kind
    return ""
