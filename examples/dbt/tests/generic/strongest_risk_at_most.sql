{# the upper end of the interval counts; a risk that could not be measured fails, and so does an attacker who could not
   be asked because nobody says what call made the rows: call="muco(0.2)" #}
{% test strongest_risk_at_most(model, original, max_risk, targets=500, call=none) %}
select attacker, identity, identity_high, note
from linkage_risk('{{ original }}', '{{ model }}', targets := {{ targets }}, seed := 1
    {%- if call %}, call := '{{ call | replace("'", "''") }}'{% endif %})
where (attacker = 'strongest' and (identity_high is null or identity_high > {{ max_risk }}))
    or (attacker = 'likelihood' and identity is null)
{% endtest %}
