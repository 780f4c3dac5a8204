# One host of a fleet: an overlay over the base image, and the systemd-nspawn that runs it. Sourced by tests/fleet.
#
# A host's machine name is fN-I, with the number of its fleet's subnet and its own index: unique on this machine, and
# short enough that nspawn's vb-fN-I fits the kernel's 15 characters for a link, whatever the host is called.

host_address() { printf '%s' "$(<"$state/hosts/$1/address")"; }
host_machine() { printf 'f%s-%s' "$(<"$state/subnet")" "$(<"$state/hosts/$1/index")"; }
host_link() { printf 'vb-%s' "$(host_machine "$1")"; }

need_host() {
  [[ -d $state/hosts/${1#*@} ]] || die "no host '$1' in fleet '$fleet': there are $(fleet_hosts | paste -sd ' ')"
}

# The id of the host's systemd-nspawn, or nothing when the host is off.
host_pid() {
  local pid='' argument arguments=()
  { read -r pid <"$state/hosts/$1/pid" || [[ -n $pid ]]; } 2>/dev/null || return 0
  { mapfile -d '' arguments <"/proc/$pid/cmdline"; } 2>/dev/null || return 0
  # The id alone may by now belong to another process.
  for argument in "${arguments[@]}"; do
    [[ $argument != "--machine=$(host_machine "$1")" ]] || printf '%s' "$pid"
  done
}

# The id, on this machine, of the host's own PID 1.
host_init() {
  local pid child children=()
  pid=$(host_pid "$1")
  { read -ra children <"/proc/$pid/task/$pid/children"; } 2>/dev/null || true
  for child in "${children[@]}"; do
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

# A host's cgroup in each hierarchy that systemd knows; the first one has version 2. Guests started from one shell would
# otherwise share a cgroup, and stopping nginx on one host would wait for the nginx of another.
host_cgroups() {
  local root=/sys/fs/cgroup
  if [[ $(stat -fc %T $root) == cgroup2fs ]]; then
    printf '%s\n' "$root/fleetctl-tests/$(host_machine "$1")"
  elif [[ -d $root/unified ]]; then
    printf '%s\n' $root/{unified,systemd}/fleetctl-tests/"$(host_machine "$1")"
  else
    die "version 2 of cgroups is not mounted below $root"
  fi
}

# Powers a host on. What runs it lives on by itself, in a session of its own.
host_start() {
  local cgroup
  for cgroup in $(host_cgroups "$1"); do
    mkdir -p "$cgroup"
  done
  setsid "$self" run-host --name "$fleet" "$1" </dev/null >>"$state/hosts/$1/console.log" 2>&1 9>&- &
  printf '%s\n' "$!" >"$state/hosts/$1/runner"
}

# Runs a host until it is powered off. With --keep-unit and --register=no nspawn needs nothing of a systemd on this
# machine, which may have none; but then a reboot is this script's part: nspawn ends with 133 when the host asks for one.
host_run() {
  local host=$1 status=133 cgroup
  for cgroup in $(host_cgroups "$host"); do
    printf '%s' "$$" >"$cgroup/cgroup.procs"
  done
  # The hosts are Debian 12 servers, and those have version 2 of cgroups, whatever this machine has.
  export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
  while ((status == 133)); do
    systemd-nspawn --quiet --boot --keep-unit --register=no --directory="$state/hosts/$host/root" \
      --machine="$(host_machine "$host")" --hostname="$host" --network-bridge="fleet-$(<"$state/subnet")" \
      --kill-signal=SIGRTMIN+3 --resolv-conf=off --timezone=off --link-journal=no &
    printf '%s\n' "$!" >"$state/hosts/$host/pid"
    status=0
    wait "$!" || status=$?
  done
}

# Waits until the host has booted and its sshd answers. systemd's own word that it has finished makes later tests
# deterministic: no unit starts by itself any more.
# With `running` as the second argument a unit that failed is an error, too.
host_wait() {
  local host=$1 want=${2:-} runner init='' booted='' deadline=$((SECONDS + 180))
  runner=$(<"$state/hosts/$host/runner")
  # To ask before systemd listens would only cost the host the time to boot.
  until [[ -n $init && -S /proc/$init/root/run/systemd/private ]]; do
    host_may_come_up || return 1
    sleep 0.2
    init=$(host_init "$host")
  done
  until booted=$(nsenter -a -t "$init" systemctl is-system-running --wait 2>/dev/null) || [[ $booted == degraded ]]; do
    host_may_come_up || return 1
    sleep 0.1
  done
  # shellcheck disable=SC2016 # The inner bash expands these.
  until timeout 2 bash -c 'read -r line <"/dev/tcp/$0/22" && [[ $line == SSH-* ]]' "$(host_address "$host")" 2>/dev/null; do
    host_may_come_up || return 1
    sleep 0.1
  done
  if [[ $want == running && $booted != running ]]; then
    host_exec "$host" systemctl --failed --no-legend >&2 || true
    say "$host came up with failed units"
    return 1
  fi
}

# For host_wait, whose variables it reads: whether waiting still makes sense.
host_may_come_up() {
  [[ -e $state/id ]] || return 1
  kill -0 "$runner" 2>/dev/null && ((SECONDS < deadline)) && return 0
  tail -n 15 "$state/hosts/$host/console.log" >&2
  say "$host did not come up: systemd says '${booted:-nothing}', and sshd does not answer at $(host_address "$host")"
  return 1
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

# Cuts the power: all of the host at one instant. A host outlives the SIGKILL of its nspawn, so that would not do.
host_kill() {
  local cgroup
  read -r cgroup < <(host_cgroups "$1")
  [[ ! -e $cgroup ]] || printf 1 >"$cgroup/cgroup.kill"
  host_wait_gone "$1" 10 || die "$1 does not die"
}

# Waits until a host has stopped. The kernel takes its network away when its last process has ended: that is when its
# disk is at rest.
host_wait_gone() {
  local deadline=$((SECONDS + $2)) link
  while [[ -n $(host_pid "$1") ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
  link=$(host_link "$1")
  for _ in {1..40}; do
    [[ -e /sys/class/net/$link ]] || return 0
    sleep 0.05
  done
  # A host that is stopped before it gets its end of the cable leaves both ends here.
  ip link del "$link" 2>/dev/null || true
}

host_power_on() {
  [[ -z $(host_pid "$1") ]] || die "$1 has power already"
  host_wait_gone "$1" 10 || die "$1 is still going down"
  host_start "$1"
  host_wait "$1"
}

# Shuts all hosts of the fleet down at once, and kills those that hang. A fleet that never was complete is killed, as a
# systemd that has just started may not hear the call to shut down.
hosts_stop() {
  local host pid patience=0
  [[ -s $state/subnet ]] || return 0 # No host was started yet.
  if [[ -e $state/complete ]]; then
    patience=15
    for host in $(fleet_hosts); do
      pid=$(host_pid "$host")
      [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
    done
  fi
  for host in $(fleet_hosts); do
    host_wait_gone "$host" "$patience" || true
    (host_kill "$host") || true # For a host that is off this only ends what may be left of it.
  done
}

# Removes a stopped host's disk and cgroups. The kernel may still be busy with the last of its processes.
host_remove() {
  local root=$state/hosts/$1/root cgroup
  for _ in {1..50}; do
    mountpoint -q "$root" || break
    umount "$root" 2>/dev/null || sleep 0.1
  done
  ! mountpoint -q "$root" || umount --lazy "$root"
  [[ -s $state/subnet ]] || return 0 # It was never started.
  for cgroup in $(host_cgroups "$1"); do
    for _ in {1..50}; do
      [[ -d $cgroup ]] || break
      find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done
  # nspawn leaves it behind when /run is on a disk.
  rmdir "/run/systemd/nspawn/propagate/$(host_machine "$1")" 2>/dev/null || true
}
