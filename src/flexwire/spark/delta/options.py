"""How deltalake opens what a `Place` names: its URLs, and our keys in its own words.

deltalake has stores of its own, written in Rust, which know the environment but neither profiles
nor fsspec's settings. What our door of S3 has resolved is handed to it, so that there is one set of
credentials. A commit to S3 is a PUT that fails where there is such an object, which S3 and moto
have; without it two writers could both believe to be the first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from flexwire.errors import StorageError
from flexwire.storage.filesystems import door, reported, scheme_of

if TYPE_CHECKING:
    from flexwire.storage.place import Place

_SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "abfs",
                   "abfss": "abfss"}  # fmt: skip
_AZURE: Final = {
    "AccountName": "azure_storage_account_name",
    "AccountKey": "azure_storage_account_key",
    "SharedAccessSignature": "azure_storage_sas_key",
    "BlobEndpoint": "azure_storage_endpoint",
}


def check_scheme(out: Place) -> None:
    """Raise `StorageError` for an output that deltalake does not write to."""
    if out.path is None and scheme_of(out.url) not in _SCHEMES:
        known = ", ".join(f"{one}://" for one in ("s3", "gs", "abfs"))
        raise StorageError(f"expected a path, {known} for Delta tables", url=str(out))


def table_url(place: Place) -> str:
    """The URL of a table in deltalake."""
    if place.path is not None:
        return str(place.path)
    return f"{_SCHEMES[scheme_of(place.url)]}://{place.url.partition('://')[2]}"


def storage_options(place: Place) -> dict[str, str]:
    """What deltalake is to be told beside the environment, which it reads too."""
    scheme = scheme_of(place.url)
    if scheme in {"s3", "s3a"}:
        with reported(place.url, "open"):
            return _s3(place.url)
    if scheme in {"az", "abfs", "abfss"}:
        return _azure()
    return {}


def _s3(url: str) -> dict[str, str]:
    opened = door(url)
    client = opened.wait(opened.files.set_session)
    endpoint = str(client.meta.endpoint_url)
    told = {"AWS_REGION": str(client.meta.region_name).replace("aws-global", "us-east-1")}
    if not endpoint.endswith(".amazonaws.com"):
        told["AWS_ENDPOINT_URL"] = endpoint
    if endpoint.startswith("http:"):
        told["AWS_ALLOW_HTTP"] = "true"
    keys = None if opened.files.anon else opened.wait(_keys, client)
    if keys is None:
        return {**told, "AWS_SKIP_SIGNATURE": "true"}
    told |= {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
    return told | ({"AWS_SESSION_TOKEN": keys.token} if keys.token else {})


async def _keys(client: Any) -> Any:
    # Of whatever source: given to fsspec, the environment, a profile or a role.
    found = client._request_signer._credentials  # noqa: SLF001 - a client has no other way to say it
    return None if found is None else await found.get_frozen_credentials()


def _azure() -> dict[str, str]:
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(one.partition("=")[::2] for one in text.split(";") if one)
    told = {name: parts[part] for part, name in _AZURE.items() if part in parts}
    if told.get("azure_storage_endpoint", "").startswith("http:"):
        told["azure_allow_http"] = "true"
    return told
