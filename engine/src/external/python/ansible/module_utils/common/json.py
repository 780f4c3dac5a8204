"""Values into JSON."""

import datetime
import json
from collections.abc import Mapping

from ansible.module_utils.common.text.converters import _json_encode_fallback, to_text


class AnsibleJSONEncoder(json.JSONEncoder):
    """JSON of dates, sets, mappings and bytes, too."""

    def __init__(self, preprocess_unsafe=False, vault_to_text=False, **kwargs):
        super(AnsibleJSONEncoder, self).__init__(**kwargs)

    def default(self, o):
        return _json_encode_fallback(o)


def json_dump(structure):
    """JSON with sorted keys, for reading."""
    return json.dumps(structure, cls=AnsibleJSONEncoder, sort_keys=True, indent=4)
