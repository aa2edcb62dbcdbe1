// SPDX-License-Identifier: GPL-2.0-or-later
// From the daemon's JSON documents to text.
#pragma once
#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cli {

// `what` as for `peerlan show`.
[[nodiscard]] std::string render(const std::string& what, const boost::json::object& document);
// All about one neighbor: a row of the view `neighbors`.
[[nodiscard]] std::string render_neighbor(const boost::json::object& neighbor);
// A line for an event of `peerlan monitor`.
[[nodiscard]] std::string render_event(const boost::json::object& event);

// Prints a view whose rows come one by one, a stretch at a time. What fits one stretch is sorted.
class RowPrinter {
 public:
  // `detail`: neighbors one by one, with all that is known of them.
  RowPrinter(std::string what, bool detail, std::function<void(const std::string&)> print)
      : what_(std::move(what)), detail_(detail), print_(std::move(print)) {}
  void add(boost::json::object row);
  // The document without its rows, or all of it.
  void finish(const boost::json::object& rest);

 private:
  void flush();

  std::string what_;
  bool detail_;
  std::function<void(const std::string&)> print_;
  std::vector<boost::json::object> rows_;
  bool begun_ = false;  // a stretch is printed
};

}  // namespace cli
