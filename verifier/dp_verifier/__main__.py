"""``python -m dp_verifier certificate.json``."""

import sys

from dp_verifier.command import main

sys.exit(main())
