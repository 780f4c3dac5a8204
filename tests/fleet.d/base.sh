# The base image: one Debian 12 root file system that all hosts of all fleets share, read-only, under their overlays.
# Sourced by tests/fleet. This file and `customise` are the recipe: a change in either gives a new image, and the old
# one stays for fleets that still run on it.

base_packages=(
  systemd systemd-sysv dbus init          # A real service manager, started as PID 1.
  openssh-server sudo libpam-modules      # The ways in.
  nginx wrk curl                          # What is tuned and what measures it. `nginx` alone is Debian's stock set-up.
  procps iproute2 kmod netbase ca-certificates
)

# What a variant adds to the image. Python is for runs of Ansible against the same hosts; logind gives every login a
# session of its own, as most installed servers do, for some 20 ms per connection. The firewall is for changes that lock out.
declare -A base_variants=(
  [stock]=""
  [python]="python3"
  [logind]="libpam-systemd"
  [firewall]="nftables iptables"
)

# Prints the directory of the image, and builds it first when it is missing.
base_image() {
  local variant=$1 cache hash image
  [[ -v base_variants[$variant] ]] || die "no variant '$variant': there are ${!base_variants[*]}"
  cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fleetctl-tests
  hash=$(cat "$parts/base.sh" "$parts/customise" - <<<"$variant" | sha256sum)
  image=$cache/base-${hash:0:16}
  if [[ ! -d $image ]]; then
    mkdir -p "$cache"
    # Two calls at once must not both build; the second finds the image once it gets the lock.
    (
      flock --nonblock 8 || { say "waiting for another build of the base image"; flock 8; }
      [[ -d $image ]] || base_build "$variant" "$image"
    ) 8>"$cache/lock" >&2
  fi
  printf '%s\n' "$image"
}

base_build() {
  local variant=$1 image=$2 packages options sources=() file
  need mmdebstrap:mmdebstrap
  say "building the base image ($variant) in $image: once, about a minute"

  # Only Debian's own sources: the machine may have others, whose keys or suites do not fit a small bookworm.
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [[ -s $file ]] && sources+=("$file")
  done
  ((${#sources[@]})) || die "no Debian sources found: /etc/apt/sources.list is empty and there is no debian.sources"

  # A build is renamed into place at the end, so an image that exists is whole.
  rm -rf --one-file-system "$image.partial"
  options=$(mktemp)
  apt-config dump | grep -iE '^Acquire::(Check-(Valid-Until|Date)|Retries|https?::)' >"$options" || true
  packages=$(IFS=,; printf '%s' "${base_packages[*]}${base_variants[$variant]:+,${base_variants[$variant]}}")
  # No fd 8 for the build: a daemon it might leave behind must not keep the lock.
  if ! mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" --aptopt="$options" \
    --customize-hook="$parts/customise" bookworm "$image.partial" "${sources[@]}" 8>&- >"$image.log" 2>&1; then
    tail -n 20 "$image.log" >&2
    rm -rf --one-file-system "$image.partial" "$options"
    die "could not build the base image; the whole log is $image.log"
  fi
  rm -f "$options"
  mv "$image.partial" "$image"
}
