"""The building blocks of the workload file's sections: their base class, and the types of their values."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.config import JsonDict
from pydantic_core.core_schema import CoreSchema, DataclassSchema, literal_schema

from slipway.components.home_folder import at_home
from slipway.components.trainer.settings.watch import STEP_RANGE

_NAME = r"^[a-z][a-z0-9_-]{0,62}$"
SNAKE_NAME = r"^[a-z][a-z0-9_]*$"
_METRIC_NAME = r"^([a-z][a-z0-9_]*/)?[a-z][a-z0-9_]*$"
_DOTTED_PATH = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$"
_CLASS_PATH = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\.[A-Za-z_][A-Za-z0-9_]*$"
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_NODE_ID = r"^[A-Za-z][A-Za-z0-9_.-]*$"
_ROOT = r"^(gs|s3|minio)://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[^/\s]+)*/?$"
_LABEL_VALUE = r"^[a-z0-9_-]{0,63}$"
_REGION = r"^[a-z]+-[a-z]+[0-9]+$"
_ENDPOINT_ID = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
_ACCOUNT = r"^[^@\s]+@[^@\s]+$"
_NETWORK = r"^projects/[^/\s]+/global/networks/[^/\s]+$"
_KMS_KEY = r"^projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+$"
_SECRET_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"  # noqa: S105  (no secret)
_SECRET_KEY = r"^[A-Za-z0-9._-]{1,253}$"  # noqa: S105
_MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"
_SHA256 = r"^[0-9a-f]{64}$"
_LETTER = r"^[\t\x20-\x7e]$"
# https://cloud.google.com/storage/docs/buckets#naming
BUCKET_WORDS = (
    "a bucket's name has 3 to 63 characters, with dots up to 222: lower-case letters, digits, -, _ and ., "
    "at both ends a letter or digit"
)
PATTERN_WORDS = {
    _LETTER: "one ASCII character, such as ',' or \"\\t\"",
    _NAME: "a letter, then letters, digits, - and _, all lower case and at most 63",
    SNAKE_NAME: "a letter, then letters, digits and _, all lower case",
    _METRIC_NAME: "a letter, then letters, digits and _, all lower case; for several outputs OUTPUT/METRIC",
    _DOTTED_PATH: "a dotted path, module and function, such as workloads.taxi.model.build_model",
    _CLASS_PATH: "a dotted path, module and class, such as workloads.taxi.metrics.Gain",
    _VARIABLE_NAME: "the name of an environment variable: letters, digits and _, no leading digit",
    _ROOT: f"gs://, s3:// or minio://BUCKET/PATH, without blanks and empty parts; {BUCKET_WORDS}",
    _LABEL_VALUE: "lower-case letters, digits, '_' and '-', at most 63",
    STEP_RANGE: "FIRST:LAST, two steps counted from 1, such as '10:20' (in quotes)",
    _REGION: "a region, such as europe-west4",
    _ENDPOINT_ID: "lowercase letters, digits and hyphens, at most 63, beginning with a letter",
    _ACCOUNT: "the address of a service account, NAME@PROJECT.iam.gserviceaccount.com",
    _NETWORK: "projects/NUMBER/global/networks/NAME",
    _KMS_KEY: "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    _SECRET_NAME: "the name of a Kubernetes secret: lower-case letters, digits, - and ., at most 253",
    _SECRET_KEY: "a key of a Kubernetes secret: letters, digits, -, _ and ., at most 253",
    _MONTH: "a month, such as 2026-11",
    _SHA256: "a SHA-256: 64 of the letters 0-9 and a-f",
    _NODE_ID: "a node id: a letter, then letters, digits, '.', '_' and '-'",
}

Text = Annotated[str, Field(min_length=1)]
PathText = Annotated[Text, AfterValidator(at_home)]
Column = Text
Name = Annotated[str, Field(pattern=_NAME)]
MetricName = Annotated[str, Field(pattern=_METRIC_NAME)]
SnakeName = Annotated[str, Field(pattern=SNAKE_NAME)]
DottedPath = Annotated[str, Field(pattern=_DOTTED_PATH)]
ClassPath = Annotated[str, Field(pattern=_CLASS_PATH)]
VariableName = Annotated[str, Field(pattern=_VARIABLE_NAME)]
StepRange = Annotated[str, Field(pattern=STEP_RANGE)]
NodeId = Annotated[str, Field(pattern=_NODE_ID)]
RootPath = Annotated[str, Field(pattern=_ROOT)]
LabelValue = Annotated[str, Field(pattern=_LABEL_VALUE)]
SecretName = Annotated[str, Field(pattern=_SECRET_NAME)]
SecretKey = Annotated[str, Field(pattern=_SECRET_KEY)]
Month = Annotated[str, Field(pattern=_MONTH)]
Sha256 = Annotated[str, Field(pattern=_SHA256)]
Region = Annotated[str, Field(pattern=_REGION)]
EndpointId = Annotated[str, Field(pattern=_ENDPOINT_ID)]
ServiceAccount = Annotated[str, Field(pattern=_ACCOUNT)]
Network = Annotated[str, Field(pattern=_NETWORK)]
KmsKey = Annotated[str, Field(pattern=_KMS_KEY)]
# YAML has lists but no tuples, so the tuple itself is not strict; its items are.
Metrics = Annotated[tuple[MetricName, ...], Field(strict=False, min_length=1)]
Slice = Annotated[tuple[Column, ...], Field(strict=False, min_length=1)]
Columns = Annotated[tuple[Column, ...], Field(strict=False)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
# One printable ASCII character, or a tab.
Letter = Annotated[str, Field(pattern=_LETTER)]
Moment = Annotated[int | float | str, Field(union_mode="left_to_right")]
Slices = Annotated[tuple[Slice, ...], Field(strict=False)]


@dataclass(frozen=True)
class OneOf:
    """Restricts text to the keys of a table, like a `Literal`, but without repeating the keys."""

    table: Iterable[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return literal_schema(list(self.table))


class _FromMapping:
    """Accepts a mapping for a dataclass; in strict mode pydantic would accept only instances of it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        cast(DataclassSchema, handler.resolve_ref_schema(schema))["strict"] = False
        return schema


_Settings = TypeVar("_Settings")
# A section whose keys are the fields of a component's settings dataclass.
SettingsOf = Annotated[_Settings, _FromMapping()]


def setting_of(component: type, name: str, **rules: Any) -> Any:
    """Return the pydantic field for one setting of a component, with its default, bounds and description.

    Args:
        component: a dataclass whose fields are made by `slipway.components.setting_fields.setting`.
        rules: arguments of `pydantic.Field` that override the setting's.
    """
    setting = next(each for each in fields(component) if each.name == name)
    made = setting.default_factory
    default = setting.default if made is MISSING else made()
    known = {} if default is MISSING else {"default": default}
    return Field(**{**known, **setting.metadata, **rules})


def drop_schema_default(schema: JsonDict) -> None:
    """Drop from the JSON Schema a default that depends on another key."""
    schema.pop("default", None)


class Section(BaseModel):
    """Base of all sections: frozen, strict (no text for numbers), and without unknown keys."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True
    )
