"""Why arguments are not accepted."""


class AnsibleValidationError(Exception):
    """One reason."""

    def __init__(self, message):
        super(AnsibleValidationError, self).__init__(message)
        self.error_message = message

    @property
    def msg(self):
        return self.args[0]


class AnsibleValidationErrorMultiple(AnsibleValidationError):
    """All reasons."""

    def __init__(self, errors=None):
        self.errors = errors[:] if errors else []

    def __getitem__(self, key):
        return self.errors[key]

    @property
    def msg(self):
        return self.errors[0].args[0]

    @property
    def messages(self):
        return [error.msg for error in self.errors]

    def append(self, error):
        self.errors.append(error)

    def extend(self, errors):
        self.errors.extend(errors.errors if isinstance(errors, AnsibleValidationErrorMultiple) else errors)


def _kind(doc):
    class Kind(AnsibleValidationError):
        __doc__ = doc

    return Kind


AnsibleFallbackNotFound = type('AnsibleFallbackNotFound', (Exception,), {'__doc__': 'No fallback gives a value.'})
AliasError = _kind('An alias is wrong.')
ArgumentTypeError = _kind('A value is of a wrong type.')
ArgumentValueError = _kind('A value is not among the choices.')
DeprecationError = _kind('A deprecation is wrong.')
ElementError = _kind('An item of a list is of a wrong type.')
MutuallyExclusiveError = _kind('Arguments exclude each other.')
NoLogError = _kind('A value to be hidden cannot be.')
RequiredByError = _kind('An argument needs another.')
RequiredDefaultError = _kind('A required argument has a default.')
RequiredError = _kind('An argument is missing.')
RequiredIfError = _kind('A value of an argument needs another.')
RequiredOneOfError = _kind('One of some arguments is missing.')
RequiredTogetherError = _kind('Arguments belong together.')
SubParameterTypeError = _kind('A nested argument is of a wrong type.')
UnsupportedError = _kind('An argument is not known.')
