// SPDX-License-Identifier: GPL-2.0-or-later
// Results, for people on standard error and as JSON on standard output.
#include <algorithm>

#include "bench/evpn_load.h"

void report(const Phase& p) {
  if (p.lat_first.size()) {
    auto pc = [](std::vector<double> v, double q) {
      std::sort(v.begin(), v.end());
      return v[std::min<size_t>(v.size() - 1, size_t(q * double(v.size())))] * 1e6;
    };
    say("%-11s %s n=%zu first receiver p50 %.0f us p99 %.0f us max %.0f us; all receivers p50 %.0f "
        "us p99 %.0f us; cpu %.2f s\n",
        p.name.c_str(), p.ok ? "ok" : "FAIL", p.lat_first.size(), pc(p.lat_first, .5),
        pc(p.lat_first, .99), pc(p.lat_first, 1), pc(p.lat_all, .5), pc(p.lat_all, .99), p.cpu_all);
    return;
  }
  say("%-11s %s %.3f s (fastest receiver %.3f, sent by %.3f, all drained %.3f) %.0f routes/s, "
      "updates %lu (%.1f NLRI each), dup %lu, cpu %.3f/%.3f s, tool cpu %.3f s, rss %lu->%lu peak "
      "%lu MiB%s%s\n",
      p.name.c_str(), p.ok ? "ok" : "FAIL", p.secs, p.fastest, p.sent, p.drained,
      p.secs > 0 ? double(p.routes) / p.secs : 0, p.updates,
      p.updates ? double(p.announced + p.withdrawn + p.dup) / double(p.updates) : 0, p.dup,
      p.cpu_done, p.cpu_all, p.tool_cpu, p.rss_before >> 10, p.rss_after >> 10, p.rss_peak >> 10,
      p.foreign || p.bad_nh || p.bad_label || p.bad_attr ? " ATTR/FOREIGN MISMATCH" : "",
      p.ok ? "" : (" have " + std::to_string(p.min_have)).c_str());
}

// ---------------------------------------------------------------- output
void print_json(u64 rss_start, u64 rss_est) {
  auto pc = [](std::vector<double> v, double q) {
    if (v.empty()) return 0.0;
    std::sort(v.begin(), v.end());
    return v[std::min<size_t>(v.size() - 1, size_t(q * double(v.size())))] * 1e6;
  };
  u64 peak = 0;
  for (auto& p : g_res) peak = std::max(peak, p.rss_peak);
  u64 refresh = 0;
  for (auto* s : g_snd) refresh += s->refresh;
  printf(
      "{\"label\":\"%s\",\"senders\":%d,\"receivers\":%d,\"routes_per_sender\":%u,\"type2_total\":%"
      "lu,\"ip\":%d,\"vnis\":%u,\"attr_sets\":%u,\"scatter\":%s,\"ebgp\":%s,\"nlri_len\":%u,"
      "\"rss_start_kb\":%lu,\"rss_established_kb\":%lu,\"rss_peak_kb\":%lu,\"malformed\":%lu,"
      "\"route_refresh_rx\":%lu,\"early_session_losses\":%lu,\"fail\":\"%s\",\"phases\":[",
      O.label.c_str(), O.P, O.R, O.per, u64(O.per) * O.P, O.ip, O.vnis, O.attr_sets,
      O.scatter ? "true" : "false", O.as != O.peer_as || O.as_step ? "true" : "false", g_nlri_len,
      rss_start, rss_est, peak, g_malformed, refresh, g_early_losses, g_fail.c_str());
  bool first = true;
  for (auto& p : g_res) {
    printf(
        "%s\n "
        "{\"name\":\"%s\",\"ok\":%s,\"secs\":%.6f,\"fastest_secs\":%.6f,\"sent_secs\":%.6f,"
        "\"drained_secs\":%.6f,\"routes\":%lu,\"routes_per_s\":%.0f,"
        "\"rx_announced\":%lu,\"rx_withdrawn\":%lu,\"rx_dup\":%lu,\"rx_ghost_withdraw\":%lu,\"rx_"
        "updates\":%lu,\"rx_bytes\":%lu,\"foreign\":%lu,"
        "\"bad_nexthop\":%lu,\"bad_label\":%lu,\"bad_attr\":%lu,\"min_have\":%lu,"
        "\"cpu_s\":%.4f,\"cpu_at_done_s\":%.4f,\"tool_cpu_s\":%.4f,\"rss_before_kb\":%lu,\"rss_at_"
        "done_kb\":%lu,\"rss_after_kb\":%lu,\"rss_peak_kb\":%lu",
        first ? "" : ",", p.name.c_str(), p.ok ? "true" : "false", p.secs, p.fastest, p.sent,
        p.drained, p.routes, p.secs > 0 ? double(p.routes) / p.secs : 0, p.announced, p.withdrawn,
        p.dup, p.ghost, p.updates, p.bytes, p.foreign, p.bad_nh, p.bad_label, p.bad_attr,
        p.min_have, p.cpu_all, p.cpu_done, p.tool_cpu, p.rss_before, p.rss_done, p.rss_after,
        p.rss_peak);
    if (p.name == "late")
      printf(",\"established_secs\":%.6f,\"secs_after_established\":%.6f", p.established,
             p.secs - p.established);
    if (p.lat_first.size())
      printf(
          ",\"n\":%zu,\"first_p50_us\":%.1f,\"first_p99_us\":%.1f,\"first_max_us\":%.1f,\"all_p50_"
          "us\":%.1f,\"all_p99_us\":%.1f,\"all_max_us\":%.1f",
          p.lat_first.size(), pc(p.lat_first, .5), pc(p.lat_first, .99), pc(p.lat_first, 1),
          pc(p.lat_all, .5), pc(p.lat_all, .99), pc(p.lat_all, 1));
    printf("}");
    first = false;
  }
  printf("\n]}\n");
}
