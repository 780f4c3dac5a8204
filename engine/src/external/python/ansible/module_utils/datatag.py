"""Values with a note; here they have none."""


def deprecate_value(value, msg, **kwargs):
    return value


def native_type_name(value):
    return type(value).__name__
