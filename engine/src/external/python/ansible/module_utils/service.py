"""Services, as scripts of old know them."""

import glob
import os
import select
import shlex
import subprocess

from ansible.module_utils.common.text.converters import to_bytes, to_text


def sysv_is_enabled(name, runlevel=None):
    """Whether a script is started in a run level."""
    if runlevel:
        if not os.path.isdir('/etc/rc0.d/'):
            return bool(glob.glob('/etc/init.d/rc%s.d/S??%s' % (runlevel, name)))
        return bool(glob.glob('/etc/rc%s.d/S??%s' % (runlevel, name)))
    return bool(glob.glob('/etc/rc?.d/S??%s' % name) or glob.glob('/etc/init.d/rc?.d/S??%s' % name))


def get_sysv_script(name):
    """The path of a script by its name."""
    return name if name.startswith('/') else '/etc/init.d/%s' % name


def sysv_exists(name):
    return os.path.exists(get_sysv_script(name))


def get_ps(module, pattern):
    """Whether a process has this in its line."""
    rc, out, err = module.run_command([module.get_bin_path('ps', True), 'auxwww'])
    return rc == 0 and any(pattern in line for line in out.split('\n'))


def fail_if_missing(module, found, service, msg=''):
    """Fails the module where a service is not there."""
    if not found:
        module.fail_json(msg='Could not find the requested service %s: %s' % (service, msg))


def fork_process():
    """Leaves the session, in a child; returns its number, 0 in the child."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os.setsid()
        os.chdir('/')
        grandchild = os.fork()
        if grandchild > 0:
            os._exit(0)
    return child


def daemonize(module, cmd):
    """Runs a command in a session of its own, and returns its exit status and outputs."""
    argv = shlex.split(cmd) if isinstance(cmd, str) else cmd
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd='/'
        )
    except OSError as problem:
        module.fail_json(msg='cannot run %s: %s' % (argv[0], problem))
    kept = {process.stdout: b'', process.stderr: b''}
    open_pipes = list(kept)
    while open_pipes:
        ready = select.select(open_pipes, [], [], 1)[0]
        for pipe in ready:
            part = os.read(pipe.fileno(), 65536)
            kept[pipe] += part
            if not part:
                open_pipes.remove(pipe)
        # A daemon keeps the pipes, and its starter has ended.
        if not ready and process.poll() is not None:
            break
    return process.wait(), to_text(kept[process.stdout]), to_text(kept[process.stderr])
