-- Read by wrk at start; says at the end what its text rounds away. Times in microseconds.
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'fleetctl {"answers":%.0f,"duration_us":%.0f,"bytes":%.0f,' ..
    '"errors":{"connect":%.0f,"read":%.0f,"write":%.0f,"timeout":%.0f,"status":%.0f},' ..
    '"latency":{"mean_us":%.1f,"p50_us":%.0f,"p75_us":%.0f,"p90_us":%.0f,"p99_us":%.0f,"p999_us":%.0f,"max_us":%.0f}}\n',
    summary.requests, summary.duration, summary.bytes,
    e.connect, e.read, e.write, e.timeout, e.status,
    latency.mean, latency:percentile(50), latency:percentile(75), latency:percentile(90),
    latency:percentile(99), latency:percentile(99.9), latency.max))
end
