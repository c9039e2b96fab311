"""The frameworks of integrations, as far as this Python has them."""

import sys

# Pydantic AI needs Python 3.11.
collect_ignore = [] if sys.version_info >= (3, 11) else ["test_pydantic_ai.py"]
