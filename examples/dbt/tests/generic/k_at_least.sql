{% test k_at_least(model, k) %}
select k from k_anonymity('{{ model }}') where k is null or k < {{ k }}
{% endtest %}
