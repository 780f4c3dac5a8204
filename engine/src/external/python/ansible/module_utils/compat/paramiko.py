"""Paramiko where the host has it."""

PARAMIKO_IMPORT_ERR = None
paramiko = None
try:
    import paramiko
except Exception as problem:
    PARAMIKO_IMPORT_ERR = problem
