"""YAML where the host's Python has it."""

from functools import partial

HAS_LIBYAML = False
try:
    import yaml

    HAS_YAML = True
    HAS_LIBYAML = getattr(yaml, '__with_libyaml__', False)
    SafeLoader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    SafeDumper = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
    yaml_load = partial(yaml.load, Loader=SafeLoader)
    yaml_load_all = partial(yaml.load_all, Loader=SafeLoader)
    yaml_dump = partial(yaml.dump, Dumper=SafeDumper)
    yaml_dump_all = partial(yaml.dump_all, Dumper=SafeDumper)
except ImportError:
    HAS_YAML = False
    yaml_load = yaml_load_all = yaml_dump = yaml_dump_all = None
