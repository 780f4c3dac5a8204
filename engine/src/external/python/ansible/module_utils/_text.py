"""The old name of `common.text.converters`."""

import codecs

from ansible.module_utils.common.text.converters import (
    HAS_SURROGATEESCAPE,
    jsonify,
    to_bytes,
    to_native,
    to_text,
)
from ansible.module_utils.six import PY3, binary_type, text_type
