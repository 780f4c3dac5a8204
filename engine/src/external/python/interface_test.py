"""What modules may rely on: the interface of `ansible.module_utils`, as Ansible documents it and as it behaves."""

import contextlib
import io
import json
import os
import stat
import tempfile
import unittest

from ansible.module_utils import basic
from ansible.module_utils.common import warnings
from ansible.module_utils.common.dict_transformations import (
    camel_dict_to_snake_dict,
    dict_merge,
    recursive_diff,
    snake_dict_to_camel_dict,
)
from ansible.module_utils.common.network import to_netmask, to_subnet
from ansible.module_utils.common.text.converters import to_bytes, to_native, to_text
from ansible.module_utils.common.text.formatters import bytes_to_human, human_to_bytes
from ansible.module_utils.compat.version import LooseVersion, StrictVersion
from ansible.module_utils.database import SQLParseError, mysql_quote_identifier, pg_quote_identifier
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.module_utils.urls import prepare_multipart


def answer(args, act=None, **spec):
    """What a module with this specification answers to these arguments."""
    basic._ANSIBLE_ARGS = json.dumps({'ANSIBLE_MODULE_ARGS': dict(args, _ansible_module_name='m')}).encode()
    del warnings._global_warnings[:], warnings._global_deprecations[:]
    said = io.StringIO()
    spec.setdefault('argument_spec', {})
    with contextlib.redirect_stdout(said):
        try:
            module = basic.AnsibleModule(**spec)
            if act:
                act(module)
            module.exit_json(changed=False, params=module.params)
        except SystemExit:
            pass
    return json.loads(said.getvalue())


def refused(args, **spec):
    said = answer(args, **spec)
    assert said['failed'], said
    return said['msg']


class Arguments(unittest.TestCase):
    def test_types(self):
        for kind, given, taken in (
            ('str', 5, '5'),
            ('str', None, None),
            ('int', '12', 12),
            ('float', '1.5', 1.5),
            ('bool', 'yes', True),
            ('list', 'a,b', ['a', 'b']),
            ('list', 5, ['5']),
            ('dict', 'a=1 b="x y"', {'a': '1', 'b': 'x y'}),
            ('dict', '{"a": 1}', {'a': 1}),
            ('path', '~', os.path.expanduser('~')),
            ('json', {'a': 1}, '{"a": 1}'),
            ('bytes', '10M', 10485760),
            ('bits', '1Mb', 1048576),
            ('raw', [1], [1]),
        ):
            said = answer({'a': given}, argument_spec={'a': {'type': kind}})
            self.assertEqual(said['params']['a'], taken, kind)

    def test_wrong_types(self):
        wrong = "argument 'a' is of type %s and we were unable to convert to %s: "
        for kind, given, message in (
            ('int', 'z', wrong % ('str', 'int') + '"\'z\'" cannot be converted to an int'),
            ('float', 'x', wrong % ('str', 'float') + "<class 'str'> cannot be converted to a float"),
            ('dict', 'zzz', wrong % ('str', 'dict') + 'dictionary requested, could not parse JSON or key=value'),
        ):
            self.assertEqual(refused({'a': given}, argument_spec={'a': {'type': kind}}), message)
        elements = {'a': {'type': 'list', 'elements': 'int'}}
        self.assertEqual(answer({'a': '1,2'}, argument_spec=elements)['params']['a'], [1, 2])
        self.assertTrue(refused({'a': ['z']}, argument_spec=elements).startswith("Elements value for option 'a' is of type str"))

    def test_choices(self):
        spec = {'a': {'choices': ['x', 'y']}, 'b': {'choices': ['yes', 'maybe']}, 'c': {'type': 'list', 'choices': [1, 2]}}
        self.assertEqual(refused({'a': 'z'}, argument_spec=spec), 'value of a must be one of: x, y, got: z')
        self.assertEqual(answer({'b': True}, argument_spec=spec)['params']['b'], 'yes')
        self.assertEqual(
            refused({'c': [1, 3]}, argument_spec=spec), 'value of c must be one or more of: 1, 2. Got no match for: 3'
        )

    def test_names(self):
        spec = {'a': {'aliases': ['b'], 'required': True}, 'c': {'default': 7, 'type': 'int'}}
        self.assertEqual(answer({'b': 'x'}, argument_spec=spec)['params'], {'a': 'x', 'b': 'x', 'c': 7})
        self.assertEqual(refused({}, argument_spec=spec), 'missing required arguments: a')
        self.assertEqual(
            refused({'a': 'x', 'z': 1, 'y': 1}, argument_spec=spec),
            'Unsupported parameters for (m) module: y, z. Supported parameters include: a, c (b).',
        )
        both = answer({'a': 'x', 'b': 'y'}, argument_spec=spec)
        self.assertEqual((both['params']['a'], both['warnings']), ('y', ['Both option a and its alias b are set.']))

    def test_rules(self):
        spec = {name: {} for name in 'abcd'}
        for args, rule, message in (
            ({'a': '1', 'b': '1'}, {'mutually_exclusive': [['a', 'b']]}, 'parameters are mutually exclusive: a|b'),
            ({'a': '1'}, {'required_together': [['a', 'b']]}, 'parameters are required together: a, b'),
            ({}, {'required_one_of': [['a', 'b']]}, 'one of the following is required: a, b'),
            ({'a': '1'}, {'required_if': [['a', '1', ['b', 'c']]]}, 'a is 1 but all of the following are missing: b, c'),
            ({'a': '1'}, {'required_if': [['a', '1', ['b'], True]]}, 'a is 1 but any of the following are missing: b'),
            ({'a': '1'}, {'required_by': {'a': 'b'}}, "missing parameter(s) required by 'a': b"),
        ):
            self.assertEqual(refused(args, argument_spec=spec, **rule), message)

    def test_nested(self):
        spec = {
            'd': {
                'type': 'dict',
                'options': {'x': {'type': 'int', 'required': True}, 'y': {'default': 'why'}},
            },
            'l': {'type': 'list', 'elements': 'dict', 'options': {'x': {'type': 'bool'}}},
            'e': {'type': 'dict', 'apply_defaults': True, 'options': {'x': {'default': 1, 'type': 'int'}}},
        }
        said = answer({'d': {'x': '1'}, 'l': [{'x': 'no'}]}, argument_spec=spec)['params']
        self.assertEqual(said, {'d': {'x': 1, 'y': 'why'}, 'l': [{'x': False}], 'e': {'x': 1}})
        self.assertEqual(refused({'d': {}}, argument_spec=spec), 'missing required arguments: x found in d')
        self.assertEqual(
            refused({'d': {'x': 1, 'z': 1}}, argument_spec=spec),
            'Unsupported parameters for (m) module: d.z. Supported parameters include: x, y.',
        )

    def test_fallbacks(self):
        spec = {'a': {'fallback': (basic.env_fallback, ['FLEETCTL_TEST_A'])}}
        os.environ['FLEETCTL_TEST_A'] = 'from there'
        self.assertEqual(answer({}, argument_spec=spec)['params']['a'], 'from there')
        del os.environ['FLEETCTL_TEST_A']
        self.assertIsNone(answer({}, argument_spec=spec)['params']['a'])


class Result(unittest.TestCase):
    def test_secrets_are_hidden(self):
        spec = {'p': {'no_log': True}, 'd': {'type': 'dict', 'options': {'k': {'no_log': True}}}, 'a': {}}
        args = {'p': 'geheim', 'd': {'k': 'hush'}, 'a': 'a geheim hush'}
        said = answer(args, lambda module: module.exit_json(all=module.params, n=5), argument_spec=spec)
        self.assertEqual(said['all']['p'], 'VALUE_SPECIFIED_IN_NO_LOG_PARAMETER')
        self.assertEqual(said['all']['a'], 'a ******** ********')
        self.assertEqual(said['n'], 5)

    def test_what_it_was_called_with_is_told_to_who_asks(self):
        self.assertNotIn('invocation', answer({}))
        said = answer({'a': '1', '_ansible_inject_invocation': True}, argument_spec={'a': {}})
        self.assertEqual(said['invocation'], {'module_args': {'a': '1'}})

    def test_check_mode(self):
        said = answer({'_ansible_check_mode': True})
        self.assertEqual((said['skipped'], said['msg']), (True, 'remote module (m) does not support check mode'))
        said = answer({'_ansible_check_mode': True}, lambda m: m.exit_json(c=m.check_mode), supports_check_mode=True)
        self.assertEqual(said, {'c': True})

    def test_passwords_are_warned_of(self):
        spec = {'login_password': {}, 'bypass': {}, 'update_password': {'choices': ['always']}}
        self.assertEqual(answer({}, argument_spec=spec)['warnings'], ['Module did not set no_log for login_password'])

    def test_deprecations(self):
        spec = {'a': {'aliases': ['b'], 'deprecated_aliases': [{'name': 'b', 'version': '9.9'}]}}
        said = answer({'b': '1'}, argument_spec=spec)['deprecations']
        self.assertEqual(said[0]['msg'], "Alias 'b' is deprecated. See the module docs for more information")
        self.assertEqual(said[0]['version'], '9.9')

    def test_an_address_is_logged_without_its_password(self):
        self.assertEqual(basic.heuristic_log_sanitize('https://u:secret@h/'), 'https://u:********@h/')


class Programs(unittest.TestCase):
    def run_it(self, *args, **kwargs):
        outcome = []
        said = answer({}, lambda module: outcome.append(module.run_command(*args, **kwargs)))
        return outcome[0] if outcome else said

    def test_outputs(self):
        self.assertEqual(self.run_it('echo a b'), (0, 'a b\n', ''))
        self.assertEqual(self.run_it(['sh', '-c', 'echo err >&2; exit 3']), (3, '', 'err\n'))
        self.assertEqual(self.run_it('echo a | cat', use_unsafe_shell=True), (0, 'a\n', ''))
        self.assertEqual(self.run_it('cat', data='hi'), (0, 'hi\n', ''))
        self.assertEqual(self.run_it('cat', data='hi', binary_data=True), (0, 'hi', ''))
        self.assertEqual(self.run_it('pwd', cwd='/'), (0, '/\n', ''))
        self.assertEqual(self.run_it(['sh', '-c', 'echo $X'], environ_update={'X': 'y'}, expand_user_and_vars=False)[1], 'y\n')

    def test_failures(self):
        said = self.run_it(['sh', '-c', 'exit 2', '--password', 'hush'], check_rc=True)
        self.assertEqual((said['rc'], said['cmd']), (2, "sh -c 'exit 2' --password '********'"))
        said = self.run_it(['/no/such'])
        self.assertEqual(said['rc'], 2)
        self.assertTrue(said['msg'].startswith("Error executing command: [Errno 2] No such file or directory: b'/no/such'"))

    def test_a_prompt_is_not_waited_for(self):
        self.assertEqual(self.run_it(['sh', '-c', 'printf Password:; sleep 60'], prompt_regex='Password:')[0], 257)

    def test_paths(self):
        paths = []
        answer({}, lambda module: paths.append(module.get_bin_path('sh')))
        self.assertTrue(paths[0].endswith('/sh'))
        said = answer({}, lambda module: module.get_bin_path('no-such-program', required=True))
        self.assertTrue(said['msg'].startswith('Failed to find required executable "no-such-program" in paths: '))


class Files(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = os.path.join(self.dir.name, 'f')

    def write(self, mode):
        with open(self.path, 'w') as f:
            f.write('old')
        os.chmod(self.path, mode)

    def test_modes(self):
        for before, wanted, after in (
            (0o644, '0600', 0o600),
            (0o644, 'u+x', 0o744),
            (0o644, 'u=rwx,g=u,o=', 0o770),
            (0o744, 'a+X', 0o755),
            (0o644, 'a+X', 0o644),
            (0o6755, 'u-s,g-s', 0o755),
            (0o644, 420, 0o644),
            (0o644, 'g+s', 0o2644),
        ):
            self.write(before)
            said = []
            answer({}, lambda module: said.append(module.set_mode_if_different(self.path, wanted, False)))
            self.assertEqual((stat.S_IMODE(os.stat(self.path).st_mode), said[0]), (after, before != after), wanted)

    def test_a_move_keeps_what_was_set(self):
        self.write(0o600)
        other = os.path.join(self.dir.name, 'new')
        with open(other, 'w') as f:
            f.write('new')
        answer({}, lambda module: module.atomic_move(other, self.path))
        with open(self.path) as f:
            self.assertEqual(f.read(), 'new')
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertFalse(os.path.exists(other))

    def test_backups_and_digests(self):
        self.write(0o640)
        found = []
        answer({}, lambda module: found.extend([module.backup_local(self.path), module.sha1(self.path), module.tmpdir]))
        self.assertRegex(found[0], r'/f\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~$')
        self.assertEqual(len(found[1]), 40)
        self.assertFalse(os.path.exists(found[2]))

    def test_the_result_tells_of_its_path(self):
        self.write(0o640)
        said = answer({}, lambda module: module.exit_json(path=self.path))
        self.assertEqual((said['mode'], said['state'], said['size']), ('0640', 'file', 3))
        self.assertNotIn('state', answer({}, lambda module: module.exit_json(path='/no/such')))


class Words(unittest.TestCase):
    def test_text(self):
        self.assertEqual((to_bytes('gr\u00fcn'), to_text(b'gr\xc3\xbcn')), (b'gr\xc3\xbcn', 'gr\u00fcn'))
        self.assertEqual(to_bytes(to_text(b'\xff')), b'\xff')
        self.assertEqual((to_native(5), to_text(None, nonstring='passthru')), ('5', None))
        self.assertEqual((boolean('On'), boolean('x', strict=False)), (True, False))

    def test_sizes(self):
        self.assertEqual((human_to_bytes('1.5K'), bytes_to_human(1536)), (1536, '1.50 KB'))
        with self.assertRaises(ValueError):
            human_to_bytes('10Q')

    def test_mappings(self):
        self.assertEqual(camel_dict_to_snake_dict({'HTTPEndpoint': {'IpAddress': 1}}), {'http_endpoint': {'ip_address': 1}})
        self.assertEqual(snake_dict_to_camel_dict({'a_b': [{'c_d': 1}]}), {'aB': [{'cD': 1}]})
        self.assertEqual(dict_merge({'a': {'b': 1}}, {'a': {'c': 2}}), {'a': {'b': 1, 'c': 2}})
        self.assertEqual(recursive_diff({'a': {'b': 1, 'x': 0}}, {'a': {'b': 2, 'x': 0}}), ({'a': {'b': 1}}, {'a': {'b': 2}}))
        self.assertIsNone(recursive_diff({'a': 1}, {'a': 1}))

    def test_networks(self):
        self.assertEqual((to_subnet('10.1.2.3', '255.255.255.0'), to_netmask(20)), ('10.1.2.0/24', '255.255.240.0'))

    def test_versions(self):
        self.assertLess(LooseVersion('1.9.2'), LooseVersion('1.10'))
        self.assertLess(StrictVersion('1.2a1'), StrictVersion('1.2'))
        self.assertEqual(StrictVersion('1.2'), '1.2.0')

    def test_names_in_sql(self):
        self.assertEqual(mysql_quote_identifier('a.b', 'table'), '`a`.`b`')
        self.assertEqual(pg_quote_identifier('a"b', 'database'), '"a""b"')
        with self.assertRaises(SQLParseError):
            mysql_quote_identifier('a.b', 'database')

    def test_forms(self):
        kind, body = prepare_multipart({'a': 'b', 'f': {'filename': 'x.txt', 'content': 'text'}})
        self.assertTrue(kind.startswith('multipart/form-data; boundary='), kind)
        self.assertIn(b'name="a"', body)
        self.assertIn(b'filename="x.txt"', body)


if __name__ == '__main__':
    unittest.main()
