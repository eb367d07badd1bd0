"""The sources of openai's Python client, with its own tests, and an environment that runs them."""

import suite_packages

VERSION = "3.52.0"
# As the client's pyproject.toml has them, and what its fixtures import.
REQUIREMENTS = [f"openai=={VERSION}", "httpx-aiohttp==0.2.0", "inline-snapshot", "pytest==9.2.0",
                "pytest-asyncio==1.5.0", "pytest-xdist==3.8.0", "rich==13.9.4", "trio"]


def sources():
    return suite_packages.unpacked("openai", f"openai-{VERSION}.tar.gz") / f"openai-{VERSION}"


def python():
    return suite_packages.python("openai", REQUIREMENTS)
