"""Runs the module that lies in this archive. Its arguments come as JSON on standard input."""

import runpy
import sys


def main():
    given = sys.stdin.buffer.read()
    from ansible.module_utils import basic
    from fleetctl_module import NAME

    basic._ANSIBLE_ARGS = given
    sys.argv = [NAME]
    try:
        runpy.run_module(NAME, run_name='__main__', alter_sys=True)
    except Exception as problem:
        import json
        import traceback

        said = 'Task failed: Module failed: %s' % (problem,)
        print('\n' + json.dumps({'failed': True, 'msg': said, 'exception': traceback.format_exc()}))
        sys.exit(1)


if __name__ == '__main__':
    main()
