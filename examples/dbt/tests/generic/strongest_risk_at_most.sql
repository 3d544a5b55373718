{# the upper end of the interval counts, and a risk that could not be measured fails #}
{% test strongest_risk_at_most(model, original, max_risk, targets=500) %}
select identity, identity_high
from linkage_risk('{{ original }}', '{{ model }}', targets := {{ targets }}, seed := 1)
where attacker = 'strongest' and (identity_high is null or identity_high > {{ max_risk }})
{% endtest %}
