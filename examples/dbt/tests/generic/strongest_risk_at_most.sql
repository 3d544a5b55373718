{# The upper end of the interval counts. A risk that could not be measured fails, and so does an attacker that needs the
   call that made the rows, where it is missing: call="muco(0.2)" #}
{% test strongest_risk_at_most(model, original, max_risk, targets=500, call=none) %}
select attacker, identity, identity_high, channel, note
from linkage_risk('{{ original }}', '{{ model }}', targets := {{ targets }}, seed := 1
    {%- if call %}, call := '{{ call | replace("'", "''") }}'{% endif %})
where (attacker = 'strongest' and (identity_high is null or identity_high > {{ max_risk }}))
    or (attacker = 'likelihood' and (identity is null or channel = 'bootstrap'))
{% endtest %}
