// SPDX-License-Identifier: GPL-2.0-or-later
// The phases, and what is measured of the target during each.
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "bench/evpn_load.h"

// Of all its threads, to the nanosecond: a phase may be shorter than a few clock ticks.
static double cpu_of(int pid) {
  double seconds = 0;
  char path[96];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* tasks = opendir(path);
  if (!tasks) return 0;
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, task->d_name);
    FILE* f = fopen(path, "r");
    if (!f) continue;
    unsigned long long ns = 0;
    if (fscanf(f, "%llu", &ns) == 1) seconds += double(ns) * 1e-9;
    fclose(f);
  }
  closedir(tasks);
  return seconds;
}
ProcSample proc_sample() {
  ProcSample r;
  for (int pid : O.pids) {
    char path[64], buf[4096];
    r.cpu += cpu_of(pid);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (FILE* f = fopen(path, "r")) {
      unsigned long v;
      while (fgets(buf, sizeof buf, f)) {
        if (sscanf(buf, "VmHWM: %lu", &v) == 1) r.hwm_kb += v;
        if (sscanf(buf, "VmRSS: %lu", &v) == 1) r.rss_kb += v;
      }
      fclose(f);
    }
  }
  return r;
}
void proc_reset_peak() {
  for (int pid : O.pids) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", pid);
    int fd = open(path, O_WRONLY);
    if (fd >= 0) {
      (void)!write(fd, "5", 1);
      close(fd);
    }
  }
}
double self_cpu() {
  rusage ru;
  getrusage(RUSAGE_SELF, &ru);
  return double(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
         double(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
}

static ProcSample g_p0;
static double g_tool0;

void begin_phase(Phase& ph, const char* name) {
  ph.name = name;
  for (auto* r : g_rcv) r->set->reset_counters();
  proc_reset_peak();
  g_p0 = proc_sample();
  g_tool0 = self_cpu();
  ph.rss_before = g_p0.rss_kb;
}
void end_phase(Phase& ph, double t0, double slow_drain = 120) {
  ProcSample p = proc_sample();
  ph.cpu_done = p.cpu - g_p0.cpu;
  ph.rss_done = p.rss_kb;
  ph.tool_cpu = self_cpu() - g_tool0;
  if (g_fail.empty()) settle(O.quiet, slow_drain);
  ph.drained = g_last_rx_any > t0 ? g_last_rx_any - t0 : 0;
  p = proc_sample();
  ph.cpu_all = p.cpu - g_p0.cpu;
  ph.rss_after = p.rss_kb;
  ph.rss_peak = p.hwm_kb;
  u64 mn = ~0ull;
  for (auto* r : g_rcv) {
    RxSet& q = *r->set;
    ph.announced += q.announced, ph.withdrawn += q.withdrawn, ph.dup += q.dup,
        ph.ghost += q.ghost_wd;
    ph.updates += q.updates, ph.bytes += q.bytes, ph.foreign += q.foreign.size();
    ph.bad_nh += q.bad_nh, ph.bad_label += q.bad_label, ph.bad_attr += q.bad_attr;
    mn = std::min(mn, q.count);
  }
  ph.min_have = mn;
}
// all senders announce or withdraw their whole table
bool bulk(const char* name, bool withdraw) {
  Phase ph;
  begin_phase(ph, name);
  u64 per_all = u64(O.per) + (O.imet ? O.vnis : 0);
  ph.routes = per_all * O.P;
  u64 want = withdraw ? 0 : ph.routes;
  for (auto* s : g_snd) {
    s->gen = TxGen{};
    s->gen.active = true;
    s->gen.withdraw = withdraw;
    s->gen.end = O.per;
    s->gen.imet_end = O.imet ? O.vnis : 0;
    s->gen.eor = !withdraw;
    s->held_from = 0, s->held_to = withdraw ? 0 : O.per, s->held_imet = !withdraw && O.imet;
  }
  size_t left = g_rcv.size();
  for (auto* r : g_rcv) r->set->t_done = 0;
  g_after_rx = [&](Session& s) {
    if (s.sender || !s.set) return;
    if (s.set->count == want && s.set->t_done == 0 && (s.set->announced || s.set->withdrawn))
      s.set->t_done = now(), left--;
  };
  double t0 = now();
  g_now = t0;
  for (auto* s : g_snd) flush(*s);
  double t_sent = 0;
  bool ok = run_until(
      [&] {
        if (t_sent == 0) {
          bool all = true;
          for (auto* s : g_snd) all &= !s->gen.active && s->tx_head >= s->tx.size();
          if (all) t_sent = now();
        }
        return left == 0;
      },
      O.timeout);
  g_after_rx = nullptr;
  double mx = 0, mn = 1e9;
  for (auto* r : g_rcv) {
    double d = r->set->t_done ? r->set->t_done - t0 : now() - t0;
    mx = std::max(mx, d), mn = std::min(mn, d);
  }
  ph.ok = ok;
  ph.secs = mx, ph.fastest = mn, ph.sent = t_sent ? t_sent - t0 : 0;
  end_phase(ph, t0);
  for (auto* r : g_rcv) ok &= r->set->count == want;
  ph.ok = ok;
  report(ph);
  g_res.push_back(ph);
  return ok;
}

bool latency(bool withdraw) {
  Phase ph;
  begin_phase(ph, withdraw ? "lat_withdraw" : "latency");
  ph.routes = O.lat_n;
  bool ok = true;
  double start = now();
  Session& s = *g_snd[0];
  u32 k = 0;
  for (; k < O.lat_n && ok; k++) {
    u32 i = O.per + k;
    u64 slot = i;  // sender 0
    size_t left = g_rcv.size();
    std::vector<char> seen(g_rcv.size(), 0);
    double t_first = 0, t_all = 0;
    g_after_rx = [&](Session& r) {
      if (r.sender || !r.set || size_t(r.idx) >= seen.size() || seen[r.idx]) return;
      if (r.set->has(slot) == !withdraw) {
        double t = now();
        if (t_first == 0) t_first = t;
        seen[r.idx] = 1;
        if (--left == 0) t_all = t;
      }
    };
    s.gen = TxGen{};
    s.gen.active = true;
    s.gen.withdraw = withdraw;
    s.gen.next = i, s.gen.end = i + 1;
    double t0 = now();
    g_now = t0;
    flush(s);
    ok = run_until([&] { return left == 0; }, 30);
    if (ok) ph.lat_first.push_back(t_first - t0), ph.lat_all.push_back(t_all - t0);
    if (now() - start > O.timeout) {
      k++;
      break;
    }
  }
  g_after_rx = nullptr;
  ph.ok = ok && ph.lat_first.size() > 0;
  ph.secs = now() - start;
  end_phase(ph, start);
  report(ph);
  g_res.push_back(ph);
  if (!withdraw && ok && k < O.lat_n) O.lat_n = k;  // withdraw only what was announced
  return ok;
}

bool late_joiner() {
  Phase ph;
  auto sp = std::make_unique<Session>();
  Session& s = *sp;
  s.idx = O.R;
  s.addr = O.receiver_base + O.R;
  s.as = O.as + (O.P + O.R) * O.as_step;
  s.set = std::make_unique<RxSet>();
  s.set->init();
  begin_phase(ph, "late");
  u64 want = g_rcv.empty() ? 0 : g_rcv[0]->set->count;
  ph.routes = want;
  g_all.push_back(std::move(sp));
  g_rcv.push_back(&s);
  g_after_rx = [&](Session& r) {
    if (&r == &s && s.set->count == want && s.set->t_done == 0) s.set->t_done = now();
  };
  double t0 = now();
  g_now = t0;
  start_connect(s);
  bool ok = run_until([&] { return s.set->t_done > 0; }, O.timeout);
  g_after_rx = nullptr;
  ph.secs = ph.fastest = (s.set->t_done ? s.set->t_done : now()) - t0;
  ph.established = s.t_est ? s.t_est - t0 : 0;
  ph.ok = ok;
  end_phase(ph, t0);
  report(ph);
  say("            established after %.3f s\n", ph.established);
  g_res.push_back(ph);
  g_rcv.pop_back();
  s.dropped = true;
  if (s.fd >= 0) {
    send_notification(s, 6, 3);
    shut(s, "done");
  }
  settle(O.quiet, 10);
  return ok;
}

bool session_drop() {
  Phase ph;
  begin_phase(ph, "drop");
  Session& s = *g_snd[0];
  ph.routes = u64(O.per) + (O.imet ? O.vnis : 0);
  size_t left = g_rcv.size();
  g_after_rx = [&](Session& r) {
    if (r.sender || !r.set) return;
    if (r.set->per_sender[0] == 0 && r.set->t_done == 0) r.set->t_done = now(), left--;
  };
  s.dropped = true;
  double t0 = now();
  g_now = t0;
  shut(s, "dropped on purpose");
  bool ok = run_until([&] { return left == 0; }, O.timeout);
  g_after_rx = nullptr;
  double mx = 0, mn = 1e9;
  for (auto* r : g_rcv) {
    double d = r->set->t_done ? r->set->t_done - t0 : now() - t0;
    mx = std::max(mx, d), mn = std::min(mn, d);
  }
  ph.secs = mx, ph.fastest = mn;
  ph.ok = ok;
  end_phase(ph, t0);
  report(ph);
  g_res.push_back(ph);
  return ok;
}
