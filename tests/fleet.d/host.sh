# One host of a fleet: an overlay over the base image, and the systemd-nspawn that runs it. Sourced by tests/fleet.
#
# A host's machine name is fN-I, with the number of its fleet's subnet and its own index: unique on this machine, and
# short enough that nspawn's vb-fN-I fits the kernel's 15 characters for a link, whatever the host is called.

host_dir() { printf '%s' "$state/hosts/$1"; }
host_address() { printf '%s' "$(<"$state/hosts/$1/address")"; }
host_machine() { printf 'f%s-%s' "$(<"$state/subnet")" "$(<"$state/hosts/$1/index")"; }
host_link() { printf 'vb-%s' "$(host_machine "$1")"; }

need_host() {
  [[ -d $state/hosts/${1#*@} ]] || die "no host '$1' in fleet '$fleet': there are $(fleet_hosts | paste -sd ' ')"
}

# The id of the host's systemd-nspawn, or nothing when the host is off.
host_pid() {
  local pid
  pid=$(cat "$state/hosts/$1/pid" 2>/dev/null) || return 0
  # The id alone may by now belong to another process.
  if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "--machine=$(host_machine "$1")"; then
    printf '%s' "$pid"
  fi
}

# The id, on this machine, of the host's own PID 1.
host_init() {
  local pid child
  pid=$(host_pid "$1")
  [[ -n $pid ]] || return 0
  for child in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do
    # nspawn has short-lived children while it sets the host up.
    [[ $(cat "/proc/$child/comm" 2>/dev/null) != systemd ]] || printf '%s' "$child"
  done
}

host_status() {
  if [[ -z $(host_pid "$1") ]]; then
    printf 'off'
  elif [[ $(cat "/sys/class/net/$(host_link "$1")/operstate" 2>/dev/null) == up ]]; then
    printf 'up'
  else
    printf 'cut'
  fi
}

# The first ten addresses of the subnet are the machine's.
host_define() {
  mkdir -p "$state/hosts/$1"
  printf '%s' "$2" >"$state/hosts/$1/index"
  printf '10.77.%s.%s' "$subnet" $((10 + $2)) >"$state/hosts/$1/address"
}

# Gives a host its disk, and writes what makes it differ from its sisters.
host_create() {
  local host=$1 base=$2 root id home
  root=$state/hosts/$host/root
  mkdir -p "$root" "$disk/$host"/{upper,work}
  mount -t overlay "fleet-$fleet" -o "lowerdir=$base,upperdir=$disk/$host/upper,workdir=$disk/$host/work" "$root"

  id=$(</proc/sys/kernel/random/uuid)
  printf '%s\n' "${id//-/}" >"$root/etc/machine-id"
  printf '%s\n' "$host" >"$root/etc/hostname"
  {
    # sudo complains when a host cannot look up its own name.
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n' "$host"
    grep -v " $host\$" "$state/names" || true
  } >"$root/etc/hosts"
  cat >"$root/etc/systemd/network/10-host0.network" <<NETWORK
[Match]
Name=host0

[Network]
Address=$(host_address "$host")/24
LinkLocalAddressing=no
NETWORK
  ssh-keygen -q -t ed25519 -N '' -C "root@$host" -f "$root/etc/ssh/ssh_host_ed25519_key"
  for home in root home/ops home/ada; do
    install -m 0600 --owner="$(stat -c %u "$root/$home")" --group="$(stat -c %g "$root/$home")" \
      "$state/key.pub" "$root/$home/.ssh/authorized_keys"
  done
}

# Where the machine's cgroups for hosts are. Without systemd as PID 1, guests started from one shell would share one
# cgroup, and stopping nginx on one host would wait for the nginx of another.
cgroup_roots() {
  local root
  if [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; then
    printf '%s\n' /sys/fs/cgroup/fleetctl-tests
  else
    for root in /sys/fs/cgroup/{systemd,unified}; do
      [[ ! -d $root ]] || printf '%s\n' "$root/fleetctl-tests"
    done
  fi
}

host_start() {
  local host=$1 machine root
  local unit=(--keep-unit)
  machine=$(host_machine "$host")
  [[ ! -d /run/systemd/system ]] || unit=() # Then it makes a unit for the host.
  (
    if ((${#unit[@]})); then
      for root in $(cgroup_roots); do
        mkdir -p "$root/$machine"
        printf '%s' "$BASHPID" >"$root/$machine/cgroup.procs"
      done
    fi
    # The hosts are Debian 12 servers, and those have version 2 of cgroups, whatever this machine has.
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
    exec setsid systemd-nspawn --quiet --boot "${unit[@]}" --register=no --directory="$(host_dir "$host")/root" \
      --machine="$machine" --hostname="$host" --network-bridge="fleet-$(<"$state/subnet")" \
      --kill-signal=SIGRTMIN+3 --resolv-conf=off --timezone=off --link-journal=no
  ) </dev/null >>"$(host_dir "$host")/console.log" 2>&1 9>&- &
  printf '%s' "$!" >"$state/hosts/$host/pid"
}

# Waits until the host has booted and its sshd answers. systemd's own word that it has finished makes later tests
# deterministic: no unit starts by itself any more.
# With `running` as the second argument a unit that failed is an error, too.
host_wait() {
  local host=$1 want=${2:-} address init state_now='' banner='' deadline=$((SECONDS + 120))
  address=$(host_address "$host")
  while ((SECONDS < deadline)); do
    # setsid may not have become nspawn yet, so the first moments say nothing.
    if [[ -z $(host_pid "$host") ]] && ! kill -0 "$(<"$state/hosts/$host/pid")" 2>/dev/null; then
      break
    fi
    init=$(host_init "$host")
    if [[ -n $init && $state_now != running && $state_now != degraded ]]; then
      state_now=$(nsenter -a -t "$init" systemctl is-system-running --wait 2>/dev/null || true)
    fi
    if [[ $state_now == running || $state_now == degraded ]]; then
      banner=$(timeout 2 bash -c 'read -r line <"/dev/tcp/$0/22" && printf %s "$line"' "$address" 2>/dev/null || true)
      [[ $banner != SSH-* ]] || break
    fi
    sleep 0.1
  done
  if [[ $banner != SSH-* ]]; then
    tail -n 15 "$(host_dir "$host")/console.log" >&2
    say "$host did not come up: systemd is '${state_now:-not there}', and sshd does not answer at $address"
    return 1
  fi
  if [[ $want == running && $state_now != running ]]; then
    host_exec "$host" systemctl --failed --no-legend >&2 || true
    say "$host came up with failed units"
    return 1
  fi
}

host_exec() {
  local init
  init=$(host_init "$1")
  [[ -n $init ]] || die "$1 is powered off: \`tests/fleet power-on $1\` first"
  shift
  # The environment of a login, not of this machine.
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LANG=C.UTF-8 \
    nsenter -a -t "$init" -w/root "$@"
}

# Cuts the power. The kernel kills the whole host with its nspawn; it is over once the host's end of the cable, and the
# network namespace with it, is gone.
host_kill() {
  local pid
  pid=$(host_pid "$1")
  [[ -z $pid ]] || kill -KILL "$pid"
  host_wait_gone "$1" 10 || die "$1 does not die"
}

host_wait_gone() {
  local deadline=$((SECONDS + $2))
  while [[ -n $(host_pid "$1") || -e /sys/class/net/$(host_link "$1") ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

host_power_on() {
  [[ -z $(host_pid "$1") ]] || die "$1 has power already"
  host_wait_gone "$1" 10 || die "$1 is still going down"
  host_start "$1"
  host_wait "$1"
}

# Shuts all hosts of the fleet down at once, and kills those that hang.
hosts_stop() {
  local host pid
  for host in $(fleet_hosts); do
    pid=$(host_pid "$host")
    [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
  done
  for host in $(fleet_hosts); do
    [[ -s $state/subnet ]] || continue
    host_wait_gone "$host" 15 || (host_kill "$host") || true
  done
}

# Removes a stopped host's disk and cgroup.
host_remove() {
  local root=$state/hosts/$1/root group
  # The kernel may still be busy with the last of the host's processes.
  for _ in {1..50}; do
    mountpoint -q "$root" || break
    umount "$root" 2>/dev/null || sleep 0.1
  done
  ! mountpoint -q "$root" || umount --lazy "$root"
  for group in $(cgroup_roots); do
    [[ -s $state/subnet ]] || continue
    find "$group/$(host_machine "$1")" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
