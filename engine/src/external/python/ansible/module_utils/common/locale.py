"""A locale in which programs say what can be read by machines."""

from ansible.module_utils.common.text.converters import to_native


def get_best_parsable_locale(module, preferences=None, raise_on_locale=False):
    """The first of the preferred locales that this machine has; `C` where it has none of them."""
    wanted = preferences or ['C.utf8', 'C.UTF-8', 'en_US.utf8', 'en_US.UTF-8', 'C', 'POSIX']
    try:
        program = module.get_bin_path('locale')
        if not program:
            raise RuntimeWarning("Could not find 'locale' tool")
        rc, out, err = module.run_command([program, '-a'])
        if rc != 0:
            raise RuntimeWarning('Unable to get locale information, rc=%s: %s' % (rc, to_native(err)))
        known = out.strip().splitlines()
        return next((name for name in wanted if name in known), 'C')
    except RuntimeWarning:
        if raise_on_locale:
            raise
        return 'C'
