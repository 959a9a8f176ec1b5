"""Tells by a column's name whether it identifies a row, or the person or thing that a row is about. Pure."""

import re

# user_id, Customer No., patientId: the last word, also of a name that is nothing else.
_NUMBERS = frozenset(("nr", "no", "number", "nummer"))
_SIGNS = _NUMBERS | {"id", "cid", "hid", "pid", "sid", "uid", "uuid", "guid", "key"}
# A whole name, or its last word: user, buyer_account.
_WHO = frozenset(("user", "person", "customer", "client", "patient", "subject", "account"))
# The whole name: not edad_paciente, which is a patient's age.
_ALONE = frozenset((
    "subj", "cust", "ptid", "mrn", "ssn", "imei", "iban", "msisdn", "kunde", "proband", "cliente", "paciente",
    "usuario",
))  # fmt: skip
# What may stand before a sign in one word: userid, CUSTOMERKEY, kundennr.
_NOUNS = (
    "user", "person", "pers", "cust", "customer", "client", "pat", "patient", "subj", "subject", "member",
    "player", "student", "pupil", "employee", "family", "household", "session", "account", "visitor",
    "device", "school", "order", "invoice", "transaction", "record", "case", "doc", "document", "firm",
    "company", "respondent", "contract", "policy",
    "cliente", "usuario", "persona", "paciente", "alumno",
    "kunden", "patienten", "personen", "personal", "mitglieds", "teilnehmer", "probanden", "vertrags",
    "auftrags", "konto", "beleg", "rechnungs",
)  # fmt: skip
# Too short to be looked for at the end of a word: hhid, cardno, but not discardno.
_WHOLE_WORDS = frozenset(f"{noun}{sign}" for noun in ("hh", "card", "id", "obs") for sign in _SIGNS)
# custnum, accountNum; but ordernum and num alone tell how many.
_BEFORE_NUM = frozenset(("cust", "customer", "client", "account", "invoice", "id"))
# Many persons live in a city, so that city_id and idciudad are features.
_PLACES = frozenset((
    "city", "town", "country", "state", "province", "region", "county", "district", "municipality", "zip",
    "ciudad", "municipio", "provincia", "departamento", "estado", "comuna", "pais", "ville",
    "stadt", "land", "bundesland", "kreis", "gemeinde", "plz",
))  # fmt: skip
# week_number counts, and many houses have the same number.
_COUNTED = frozenset((
    "year", "quarter", "month", "week", "day", "hour", "minute", "second", "period", "round", "lap", "page",
    "woche", "monat", "tag", "semana", "mes",
    "house", "street", "apartment", "apt", "flat", "floor", "room", "seat", "gate", "lane",
    "haus", "strasse", "straßen", "strassen", "zimmer",
))  # fmt: skip
_GLUED = tuple(f"{noun}{sign}" for noun in _NOUNS for sign in ("id", "key", *sorted(_NUMBERS)))
# No stroke: USD/person and pages/session measure. ambientNO, as NO alone, is nitric oxide.
_SEPARATORS = re.compile(r"[_\s.:#-]+|(?<=[a-z])(?=[A-Z])(?!NO$)")
# What a join by pandas or R adds. Only to an id: user_x may be a place, and NO_x are nitrogen oxides.
_OF_A_JOIN = ("x", "y")


def is_id(name: str) -> bool:
    """Return whether whole numbers of this name that differ in every row are an id, rather than an amount."""
    words = _words(name)
    if not words or _identifies(words):
        return True
    return (words[0].startswith(("row", "unnamed")) or words[-1] == "index") and not _is_a_rate(words)


def is_group(name: str) -> bool:
    """Return whether rows that share a value of this name are about the same person, or the like."""
    words = _words(name)
    is_one = words[-1:] in (["household"], ["session"], ["email"]) or words[-2:] == ["e", "mail"]
    return _identifies(words) or (is_one and not _is_a_rate(words))


def _words(name: str) -> list[str]:
    """Return the words of customer_id, Customer No. and customerId, in small letters."""
    words = [word for word in _SEPARATORS.split(name) if word]
    words = [word.lower() for word in words] if words != ["NO"] else ["nitric oxide"]
    is_joined = len(words) > 1 and words[-1] in _OF_A_JOIN and words[-2].endswith("id")
    return words[:-1] if is_joined else words


def _identifies(words: list[str]) -> bool:
    if not words or _is_a_rate(words):
        return False
    *before, last = words
    if before and words[0] == "id":  # id_cliente; not id_02, one of many features
        return words[1][0].isalpha() and words[1] not in _PLACES
    if last in _SIGNS and before:
        return before[-1] not in _PLACES and not (last in _NUMBERS and before[-1] in _COUNTED)
    if last in _SIGNS or last in _WHO or last in _WHOLE_WORDS or last.endswith(_GLUED):
        return True
    if last.endswith("num"):
        return (last.removesuffix("num") or "".join(before[-1:])) in _BEFORE_NUM
    return not before and (last in _ALONE or (last.startswith("id") and last.removeprefix("id") in _NOUNS))


def _is_a_rate(words: list[str]) -> bool:
    """Return whether it is a name such as income_per_person and costPerClient, which measure."""
    return "per" in words[:-1]
