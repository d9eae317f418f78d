"""Vendors as rows: where they are, what they speak, how they know us. Adding one is one row.

Windows, modalities and prices are not here: they come from `genai-prices`, if it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.providers.dsn import DSN
from understudy.providers.loopback import on_loopback


@dataclass(frozen=True, slots=True)
class Vendor:
    """One row. A base URL of "" means there is no default: a DSN or configuration must give one."""

    name: str
    dialect: str  # openai | responses | anthropic | gemini | ollama
    base_url: str = ""
    keys: tuple[str, ...] = ()  # variables that hold the key, the first set one counts
    auth: str = "bearer"  # bearer | x-api-key | x-goog-api-key | api-key | none
    key_needed: bool = True
    host_variable: str = ""  # a variable that overrides the base URL
    insecure: bool = False  # its DSN scheme means http, not https
    root: str = ""  # where its interface is, below an address without a path
    quirks: frozenset[str] = frozenset()


def _local(name: str, dialect: str, base_url: str, **more: object) -> Vendor:
    return Vendor(name, dialect, base_url, key_needed=False, **more)  # type: ignore[arg-type]


# Knows what OpenAI called things before: max_tokens, and the role system.
_LEGACY = frozenset({"max_tokens", "system_only"})
_FLAT = _LEGACY | {"flat_text"}
_MISTRAL = _LEGACY | {"nine_letter_ids", "random_seed", "refuses_as_mistral"}
_STATED = _LEGACY | {"schema_stated"}  # may ignore a schema: state it as well
_SCHEMA_ONLY = _LEGACY | {"schema_only"}  # has no JSON mode but by a schema
_CEREBRAS = frozenset({"system_only", "refuses_as_cerebras"})
_NVIDIA = _LEGACY | {"refuses_as_nvidia"}
_GROQ = frozenset({"system_only", "refuses_as_groq"})
_XAI = frozenset({"refuses_as_xai"})
_ROUTER = frozenset({"max_tokens"})

# fmt: off
VENDORS = (
    Vendor("openai",     "openai",    "https://api.openai.com/v1",                 ("OPENAI_API_KEY",)),
    Vendor("azure",      "openai",    "",                                          ("AZURE_OPENAI_API_KEY",), "api-key", host_variable="AZURE_OPENAI_ENDPOINT"),
    Vendor("anthropic",  "anthropic", "https://api.anthropic.com",                 ("ANTHROPIC_API_KEY",), "x-api-key"),
    Vendor("google",     "gemini",    "https://generativelanguage.googleapis.com", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "x-goog-api-key"),
    Vendor("gemini",     "gemini",    "https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "x-goog-api-key"),
    _local("ollama",     "ollama",    "http://localhost:11434", host_variable="OLLAMA_HOST"),
    Vendor("ollama-cloud", "ollama",  "https://ollama.com",                        ("OLLAMA_API_KEY",)),
    _local("foreman",    "ollama",    ""),
    _local("llama-swap", "openai",    "", insecure=True, root="/v1", quirks=_STATED),
    _local("llama-swaps", "openai",   "", root="/v1", quirks=_STATED),
    Vendor("groq",       "openai",    "https://api.groq.com/openai/v1",            ("GROQ_API_KEY",), quirks=_GROQ),
    Vendor("openrouter", "openai",    "https://openrouter.ai/api/v1",              ("OPENROUTER_API_KEY",), quirks=_ROUTER),
    Vendor("mistral",    "openai",    "https://api.mistral.ai/v1",                 ("MISTRAL_API_KEY",), quirks=_MISTRAL),
    Vendor("deepseek",   "openai",    "https://api.deepseek.com",                  ("DEEPSEEK_API_KEY",), quirks=_FLAT),
    Vendor("together",   "openai",    "https://api.together.xyz/v1",               ("TOGETHER_API_KEY",), quirks=_LEGACY),
    Vendor("fireworks",  "openai",    "https://api.fireworks.ai/inference/v1",     ("FIREWORKS_API_KEY",), quirks=_LEGACY),
    Vendor("xai",        "openai",    "https://api.x.ai/v1",                       ("XAI_API_KEY",), quirks=_XAI),
    Vendor("cerebras",   "openai",    "https://api.cerebras.ai/v1",                ("CEREBRAS_API_KEY",), quirks=_CEREBRAS),
    Vendor("perplexity", "openai",    "https://api.perplexity.ai",                 ("PERPLEXITY_API_KEY",), quirks=_SCHEMA_ONLY),
    Vendor("nvidia",     "openai",    "https://integrate.api.nvidia.com/v1",       ("NVIDIA_API_KEY",), quirks=_NVIDIA),
    Vendor("huggingface", "openai",   "https://router.huggingface.co/v1",          ("HF_TOKEN",), quirks=_LEGACY),
    _local("vllm",       "openai",    "http://localhost:8000/v1", host_variable="VLLM_BASE_URL", root="/v1", quirks=_LEGACY),
    _local("llamacpp",   "openai",    "http://localhost:8080/v1", host_variable="LLAMACPP_BASE_URL", root="/v1", quirks=_LEGACY),
    _local("lmstudio",   "openai",    "http://localhost:1234/v1", host_variable="LMSTUDIO_BASE_URL", root="/v1", quirks=_SCHEMA_ONLY),
    Vendor("moonshot",   "openai",    "https://api.moonshot.ai/v1",                ("MOONSHOT_API_KEY",), quirks=_LEGACY),
    Vendor("zhipu",      "openai",    "https://api.z.ai/api/paas/v4",              ("ZHIPU_API_KEY", "ZAI_API_KEY"), quirks=_LEGACY),
    Vendor("dashscope",  "openai",    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",), quirks=_LEGACY),
    Vendor("minimax",    "openai",    "https://api.minimax.io/v1",                 ("MINIMAX_API_KEY",), quirks=_STATED),
)
# fmt: on


def by_name() -> Mapping[str, Vendor]:
    return {vendor.name: vendor for vendor in VENDORS}


def base_url(vendor: Vendor, dsn: DSN) -> str:
    """`https://host[/path]`, except where the scheme itself means http.

    Servers that run on one's own machine have no TLS there, so on loopback they give http too.
    """
    at_home = vendor.base_url.startswith("http://") and on_loopback(dsn.host)
    scheme = "http" if vendor.insecure or at_home else "https"
    return f"{scheme}://{dsn.host}"


def key_in(vendor: Vendor, env: Mapping[str, str]) -> str:
    """The vendor's key from the environment, "" if none is set."""
    return next((key for name in vendor.keys if (key := env.get(name, "").strip())), "")


def url_in(vendor: Vendor, env: Mapping[str, str]) -> str:
    """The vendor's base URL: the variable that overrides it, or the row's own."""
    given = env.get(vendor.host_variable, "").rstrip("/") if vendor.host_variable else ""
    if given and "://" not in given:
        given = f"http://{given}"  # OLLAMA_HOST is often just host:port
    if given and vendor.name == "azure" and "/openai" not in given:
        given += "/openai/v1"  # the variable holds the bare resource address
    return given or vendor.base_url
