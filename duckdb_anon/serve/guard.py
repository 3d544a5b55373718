"""Which statements an analyst may run: one SELECT of harmless functions over published tables or the catalog.

Decided on the statement as DuckDB's own parser reads it, never on its text, and closed by default: a kind of
node, table, function or name that is not listed here is refused. The guard is the second wall; the first is that
the analyst's process holds nothing but releases and can open nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from duckdb_anon.model.identifier_case import fold

# Functions an analyst may call compute from their arguments and see nothing else. Not here, among others: whatever
# reads settings, variables, the environment, files, catalogs, other queries' text or the clock's time zone data,
# whatever runs SQL given as text, and every other helper of this package.
_OPERATORS = "+ - * / // % ** ^ || ~~ !~~ ~~* !~~* ~~~ ~ & | << >> @ ! ^@ && @> <@ <-> <=>"
_AGGREGATES = """
count count_star sum avg min max mean median mode first last any_value arg_min arg_max min_by max_by list array_agg
string_agg group_concat listagg bool_and bool_or bit_and bit_or bit_xor product fsum favg kahan_sum sumkahan geomean
geometric_mean stddev stddev_samp stddev_pop variance var_samp var_pop skewness kurtosis kurtosis_pop sem corr
covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
quantile quantile_cont quantile_disc approx_quantile approx_count_distinct approx_top_k entropy mad histogram
histogram_exact count_if countif grouping grouping_id
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value fill
"""
_NUMBERS = """
abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10 pow power mod divide multiply add subtract
greatest least pi degrees radians sin cos tan asin acos atan atan2 cot sinh cosh tanh asinh acosh atanh gcd lcm
factorial gamma lgamma even isnan isinf isfinite nextafter fdiv fmod bit_count width_bucket equi_width_bins
"""
_TEXTS = """
length len strlen lower upper lcase ucase trim ltrim rtrim left right substr substring replace concat concat_ws
contains starts_with ends_with prefix suffix position strpos instr lpad rpad repeat reverse split string_split
str_split string_split_regex regexp_matches regexp_replace regexp_extract regexp_extract_all regexp_full_match
split_part format printf chr ascii ord unicode levenshtein editdist3 damerau_levenshtein hamming jaccard
jaro_similarity jaro_winkler_similarity like_escape ilike_escape not_like_escape not_ilike_escape strip_accents
translate initcap md5 hash left_grapheme right_grapheme length_grapheme bar
"""
_TIMES = """
date_part datepart date_trunc datetrunc date_diff datediff date_sub date_add datesub date_bin time_bucket extract
year month day hour minute second quarter week weekofyear dayofweek weekday dayofyear isodow isoyear yearweek decade
century millennium era epoch epoch_ms epoch_us dayname monthname last_day make_date make_time make_timestamp age
strftime strptime try_strptime to_days to_months to_years to_hours to_minutes to_seconds to_weeks to_milliseconds
to_microseconds to_quarters to_decades to_timestamp julian microsecond millisecond
"""
_NESTED = """
list_value list_pack array_value struct_pack row struct_extract list_extract list_element array_extract list_slice
array_slice map map_keys map_values map_entries map_from_entries map_extract map_extract_value element_at
map_contains cardinality list_contains list_has array_contains array_has list_position list_indexof list_concat
list_cat array_concat list_append list_prepend list_distinct list_unique list_sort list_reverse_sort list_reverse
list_transform array_transform list_apply array_apply apply list_filter array_filter filter list_reduce array_reduce
reduce list_sum list_avg list_min list_max list_count list_aggregate list_aggr array_aggregate list_zip flatten
list_first list_last list_has_any list_has_all list_intersect list_any_value list_product list_median list_where
list_select list_resize list_dot_product list_distance list_cosine_similarity range generate_series unnest
array_length array_to_string struct_insert struct_concat struct_values struct_keys
"""
_LEARNT = "learnt_ranges learnt_segments learnt_members learnt_leaves"
"""What rewritten queries ask for (`duckdb_anon.engine.draws.estimator_udfs`): they see their lists and nothing else."""
_CHOICES = "coalesce ifnull nullif if error constant_or_null typeof try_cast cast is_distinct_from try"

AGGREGATES = frozenset(_AGGREGATES.split())
HARMLESS = AGGREGATES.union(" ".join((_OPERATORS, _NUMBERS, _TEXTS, _TIMES, _NESTED, _CHOICES)).split())
FUNCTIONS = HARMLESS.union(_LEARNT.split())


Node = dict[str, Any]
Argument = tuple[str, Node]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE"}
_TABLES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST", "PIVOT", "TABLE_FUNCTION"}
_MODIFIERS = {
    "ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING",
    "DESCENDING", "ORDER_ASCENDING", "ORDER_DESCENDING",
}  # fmt: skip
_EXPRESSIONS = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
_ANY = "any"
_TABLE = "table"
_MORE = "..."
TABLE_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("unnest", "anon_functions", "anon_parameters"), _ANY),
    **dict.fromkeys(("describe_release", "anatomy_qit", "anatomy_st"), _TABLE),
    "estimate": "query, table, bounds := any",
    "impute": "table, any, original := table, seed := any, columns := any",  # texts of rewrite_query call it
}
"""Table functions for analysts, and what their arguments must be; those with names may be left out."""
ANSWERING: Mapping[str, str] = {"unnest": _ANY, "impute": "table, any, ..."}
"""Table functions of answers that this program writes."""
# What tells of tables and columns; such statements run in a database that holds nothing but names and types.
_CATALOG = "columns constraints databases indexes schemas tables types views".split()
_CATALOG_FUNCTIONS = {f"duckdb_{name}": _ANY for name in _CATALOG} | {
    "pragma_show": _TABLE,
    "pragma_table_info": _TABLE,
}
_POSTGRES = frozenset(
    "pg_attrdef pg_attribute pg_class pg_constraint pg_database pg_description pg_enum pg_index pg_indexes "
    "pg_namespace pg_tables pg_type pg_views".split()
)
# Of such expressions a scan consists that takes little memory and no long step, whatever its table holds.
_LIGHT = {"COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "POSITIONAL_REFERENCE", "STAR"}
_FEW = 200  # nodes of a statement that is planned in no time
_NO_MEMORY = "std::bad_alloc"  # DuckDB's parser reports a failed allocation as an error of syntax with this text
_ESTIMATE, _REWRITE = "estimate", "rewrite_query"
_OF_REWRITE = "query, table, table, bounds := any"


class Refused(Exception):
    """The statement may not run; the reason names no table and no path."""


@dataclass(frozen=True)
class Statement:
    """A statement that may run."""

    node: Node  # the query, as DuckDB's parser reads it
    reads_catalog: bool  # it asks which tables and columns there are, and reads no row
    reads: frozenset[str]  # published tables, folded

    @property
    def nodes(self) -> Iterator[Node]:
        """Every node of the query."""
        return _nodes(self.node)

    @property
    def is_constant(self) -> bool:
        """Whether it is one SELECT without FROM."""
        node = self.node
        return bool(node["type"] == "SELECT_NODE" and node["from_table"]["type"] == "EMPTY" and not self.reads)

    @property
    def is_of_one_table(self) -> bool:
        """Whether it is one SELECT of one table without groups."""
        node = self.node
        if node["type"] != "SELECT_NODE" or node["from_table"]["type"] != "BASE_TABLE" or node["cte_map"]["map"]:
            return False
        return not (node.get("group_expressions") or node.get("having") or node.get("qualify"))

    @property
    def is_scan(self) -> bool:
        """Whether it shows rows of one table as they are, so that Quack reads them page by page."""
        node, nodes = self.node, list(self.nodes)
        if not self.is_of_one_table or node.get("sample"):
            return False
        heavy = {inner["class"] for inner in nodes if "class" in inner} - _LIGHT
        modifiers = {modifier["type"] for modifier in node["modifiers"]}
        return not heavy and modifiers <= {"LIMIT_MODIFIER"} and len(nodes) <= _FEW


class Guard:
    """Decides over statements for a fixed set of published tables."""

    def __init__(
        self,
        published: Iterable[str],
        functions: Collection[str] = FUNCTIONS,
        table_functions: Mapping[str, str] = TABLE_FUNCTIONS,
        hidden: Iterable[str] = (),
        unreadable: str = "only published tables can be read",
    ) -> None:
        """Allow the tables of the default schema in `published`; no step of WITH may be called like a `hidden` one.

        `unreadable` is said of any other table, with its name in the place of {name}.
        """
        self.published, self._unreadable = {fold(name) for name in published}, unreadable
        self._functions, self._table_functions = functions, table_functions
        self._hidden = {fold(name) for name in hidden}
        self._parser = duckdb.connect(":memory:")
        self._lock = threading.Lock()
        self._taken = {
            fold(name)
            for (name,) in self._parser.execute(
                "select view_name from duckdb_views() union all select table_name from duckdb_tables()"
            ).fetchall()
        } | self._hidden

    def narrowed(self, tables: Collection[str]) -> Guard:
        """A guard that allows only those of the published tables that are in `tables`, which are folded."""
        hidden = self._hidden | (self.published - set(tables))
        kept = self.published & set(tables)
        return Guard(kept, self._functions, self._table_functions, hidden, self._unreadable)

    def check(self, text: str) -> Statement:
        """Refuse all but one harmless SELECT; a MemoryError or RecursionError says nothing of the statement."""
        tree = self._parsed(text)
        nodes = list(_nodes(tree))
        names = [entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", [])]
        local = {self._local_name(name) for name in names}
        for node in nodes:
            self._check_node(node, local)
        found = Statement(tree, any(map(_is_catalog, nodes)), self._read(nodes))
        if found.reads_catalog and self._read(_nodes(tree, described=False)):
            raise Refused("the catalog and the rows of a table are read by one statement each")
        return found

    def _read(self, nodes: Iterable[Node]) -> frozenset[str]:
        """The published tables that nodes may read; a step of WITH may have the name of one."""
        tables = {fold(node["table_name"]) for node in nodes if node["type"] == "BASE_TABLE" and not _is_catalog(node)}
        return frozenset(tables & self.published)

    def _parsed(self, statement: str) -> Node:
        """The statement's tree."""
        try:
            with self._lock:
                statements = duckdb.extract_statements(statement)
                if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                    raise Refused("one SELECT at a time")
                row = self._parser.execute("select json_serialize_sql(?::varchar)", [statement]).fetchall()[0]
        except duckdb.Error as error:
            if isinstance(error, duckdb.OutOfMemoryException) or _NO_MEMORY in str(error):
                raise MemoryError from error
            raise Refused("not a statement DuckDB can read") from error
        answer = json.loads(row[0])
        if answer.get("error_type") == "out of memory" or _NO_MEMORY in answer.get("error_message", ""):
            raise MemoryError
        if answer.get("error") is not False or len(answer.get("statements", [])) != 1:
            raise Refused("this kind of SELECT is not allowed")
        node: Node = answer["statements"][0]["node"]
        return node

    def _local_name(self, name: str) -> str:
        """A CTE's name, which must not be one that means something outside its query."""
        if not _PLAIN_NAME.fullmatch(name) or fold(name) in self._taken:
            raise Refused("a name given in WITH must be a plain word that no table has")
        return fold(name)

    def _check_node(self, node: Node, local: set[str]) -> None:
        kind = node["type"]
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                raise Refused("this kind of expression is not allowed")
            if node["class"] in ("FUNCTION", "WINDOW"):
                self._check_function(node)
            elif node["class"] == "TYPE" and _is_qualified(node):
                raise Refused("types are named without a catalog or schema")
        elif kind == "BASE_TABLE":
            if not _is_catalog(node):
                self._check_table(node, local)
        elif kind == "SHOW_REF":
            if node["show_type"] == "SUMMARY":
                raise Refused("SUMMARIZE is not answered; ask for the aggregates you need")
        elif kind == "TABLE_FUNCTION":
            self._check_table_function(node["function"])
        elif kind not in _QUERIES | _TABLES | _MODIFIERS:
            raise Refused("this kind of query is not allowed")

    def _check_table(self, node: Node, local: set[str]) -> None:
        name = fold(node["table_name"])
        if node.get("catalog_name") or fold(node.get("schema_name", "")) not in ("", "main") or _is_qualified(node):
            raise Refused("only published tables can be read, without a catalog before their names")
        if node.get("at_clause") is not None or name not in self.published | local:
            raise Refused(self._unreadable.format(name=node["table_name"]))

    def _check_function(self, node: Node) -> None:
        name = fold(node.get("function_name", ""))
        if node.get("catalog") or fold(node.get("schema", "")) not in ("", "main") or _is_qualified(node):
            raise Refused("functions are called without a catalog or schema before their names")
        if name == _REWRITE and _ESTIMATE in self._table_functions:
            self._check_arguments(name, _OF_REWRITE, _arguments(node))
        elif name in (*self._table_functions, *_CATALOG_FUNCTIONS) and node.get("class") == "FUNCTION":
            # as a table function it is checked where it stands; as a scalar only unnest exists
            return
        elif name not in self._functions:
            raise Refused(f"the function {name} is not allowed")

    def _check_table_function(self, function: Node) -> None:
        name = fold(function.get("function_name", ""))
        signature = {**_CATALOG_FUNCTIONS, **self._table_functions}.get(name)
        if function.get("class") != "FUNCTION" or signature is None:
            raise Refused("this table function is not allowed")
        if signature != _ANY:
            self._check_arguments(name, signature, _arguments(function))

    def _check_arguments(self, name: str, signature: str, given: list[Argument]) -> None:
        """Check that a function gets a query that could itself run, and published tables, before everything else."""
        parts = [part.rpartition(" := ") for part in signature.split(", ")]
        wanted = [kind for argument, _, kind in parts if not argument and kind != _MORE]
        optional = {argument: kind for argument, _, kind in parts if argument}
        first, further = given[: len(wanted)], given[len(wanted) :]
        unknown = any(argument not in optional for argument, _ in further) and parts[-1][2] != _MORE
        if any(argument for argument, _ in first) or len(first) < len(wanted) or unknown:
            raise Refused(f"{name} takes {signature} here, in this order")
        wanted += [optional.get(argument, _ANY) for argument, _ in further]
        for kind, (_, node) in zip(wanted, given, strict=True):
            if kind == "query":
                if self.check(_text(node)).reads_catalog:
                    raise Refused(f"{name} takes a query over a table")
            elif kind == _TABLE and fold(_text(node)) not in self.published:
                # a SELECT in parentheses would run unseen
                raise Refused("the table argument must be the name of a published table")


def _is_catalog(node: Node) -> bool:
    """Whether a node of a FROM clause tells of tables and columns."""
    if node["type"] == "TABLE_FUNCTION":
        return fold(node["function"].get("function_name", "")) in _CATALOG_FUNCTIONS
    if node["type"] == "BASE_TABLE":
        schema = fold(node.get("schema_name", ""))
        if node.get("catalog_name") or len(node.get("qualified_name", {}).get("path", [])) > 2:
            return False
        return schema == "information_schema" or (schema == "pg_catalog" and fold(node["table_name"]) in _POSTGRES)
    return bool(node["type"] == "SHOW_REF")


def _is_qualified(node: Node) -> bool:
    """Whether a name stands in another schema than main (DuckDB 2.0 writes the whole path)."""
    path = [fold(str(part)) for part in node.get("qualified_name", {}).get("path", [])]
    return len(path) > 2 or (len(path) == 2 and path[0] != "main")


def _arguments(function: Node) -> list[Argument]:
    """Name ('' when positional) and tree of each argument, as DuckDB 1.5 or 2.0 writes them."""
    if "arguments" in function:
        return [(given["name"].lower(), given["expression"]) for given in function["arguments"]]
    return [(fold(child.get("alias", "")), child) for child in function["children"]]


def _text(node: Node) -> str:
    """The text of a constant, as DuckDB 1.5 or 2.0 writes it."""
    if node.get("class") == "CONSTANT":
        value, literal = node.get("value", {}), node.get("literal", {})
        text = literal.get("text") if literal.get("kind") == "STRING" else value.get("value")
        if isinstance(text, str) and not value.get("is_null"):
            return text
    raise Refused("the argument must be a plain text")


def _nodes(tree: Any, described: bool = True) -> Iterator[Node]:
    """Every node of a parsed statement, also of queries that are described; types and values are no nodes."""
    stack = [tree]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(here)
        elif isinstance(here, dict):
            if isinstance(here.get("type"), str):
                yield here
                if here.get("class") == "CONSTANT" or (here["type"] == "SHOW_REF" and not described):
                    continue
            stack.extend(value for key, value in here.items() if key != "cast_type")
