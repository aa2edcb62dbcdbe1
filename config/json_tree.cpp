// SPDX-License-Identifier: GPL-2.0-or-later
// JSON text to nodes. Boost.JSON's event parser decides what is JSON (yaml-cpp would take much
// that is not, and refuses surrogate pairs, which names of members do have). Its events don't say
// where they are; as the text is known to be good by then, a plain walk over it finds where each
// value begins, in the same order as the events came.
#include <boost/json/basic_parser_impl.hpp>

#include "config/tree.h"

namespace config {
namespace {

namespace json = boost::json;

struct Builder {
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  std::vector<std::shared_ptr<Node>> values;  // in order of their beginning
  std::vector<std::shared_ptr<Node>> open;
  std::string part;

  std::shared_ptr<Node> add(Node::Kind kind) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    if (!open.empty()) open.back()->items.push_back(node);
    values.push_back(node);
    return node;
  }
  bool scalar(std::string_view text, bool quoted) {
    auto node = add(Node::Kind::Scalar);
    node->text = part.append(text);
    node->quoted = quoted;
    part.clear();
    return true;
  }
  bool begin(Node::Kind kind) {
    open.push_back(add(kind));
    return true;
  }
  bool end() {
    open.pop_back();
    return true;
  }
  bool more(json::string_view text) {
    part.append(text.data(), text.size());
    return true;
  }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return begin(Node::Kind::Map); }
  bool on_object_end(std::size_t, json::error_code&) { return end(); }
  bool on_array_begin(json::error_code&) { return begin(Node::Kind::List); }
  bool on_array_end(std::size_t, json::error_code&) { return end(); }
  bool on_key_part(json::string_view s, std::size_t, json::error_code&) { return more(s); }
  bool on_key(json::string_view s, std::size_t, json::error_code&) {
    more(s);
    open.back()->keys.push_back({part, {}, true});
    part.clear();
    return true;
  }
  bool on_string_part(json::string_view s, std::size_t, json::error_code&) { return more(s); }
  bool on_string(json::string_view s, std::size_t, json::error_code&) {
    return scalar({s.data(), s.size()}, true);
  }
  bool on_number_part(json::string_view s, json::error_code&) { return more(s); }
  bool on_int64(int64_t, json::string_view s, json::error_code&) {
    return scalar({s.data(), s.size()}, false);
  }
  bool on_uint64(uint64_t, json::string_view s, json::error_code&) {
    return scalar({s.data(), s.size()}, false);
  }
  bool on_double(double, json::string_view s, json::error_code&) {
    return scalar({s.data(), s.size()}, false);
  }
  bool on_bool(bool value, json::error_code&) { return scalar(value ? "true" : "false", false); }
  bool on_null(json::error_code&) {
    add(Node::Kind::Null);
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

// Goes forward through a text and counts lines.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}
  bool done() const { return at_ >= text_.size(); }
  char here() const { return done() ? '\0' : text_[at_]; }
  Place place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  void step() {
    if (text_[at_++] != '\n') return;
    ++line_;
    line_start_ = at_;
  }
  void to(std::size_t offset) {
    while (at_ < offset && !done()) step();
  }
  void skip(std::string_view set) {
    while (!done() && set.find(here()) != std::string_view::npos) step();
  }
  void skip_string() {
    step();
    while (!done() && here() != '"') {
      if (here() == '\\') step();
      if (!done()) step();
    }
    if (!done()) step();
  }
  void skip_word() {
    while (!done() && std::string_view(",]} \t\r\n").find(here()) == std::string_view::npos) step();
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

// Where each value of a good JSON text begins.
std::vector<Place> value_places(std::string_view text) {
  std::vector<Place> places;
  Walker walker(text);
  for (walker.skip(" \t\r\n,:]}"); !walker.done(); walker.skip(" \t\r\n,:]}")) {
    const Place place = walker.place();
    const char first = walker.here();
    if (first == '{' || first == '[') {
      walker.step();
    } else if (first == '"') {
      walker.skip_string();
      walker.skip(" \t\r\n");
      if (walker.here() == ':') continue;  // a key
    } else {
      walker.skip_word();
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::expected<NodePtr, Error> parse_json(const std::string& name, std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  json::parse_options options;
  options.max_depth = 64;
  json::basic_parser<Builder> parser(options);
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = json::error::extra_data;
  if (error) {
    Walker walker(text);
    walker.to(used);
    const Place place = walker.place();
    return std::unexpected(Error{.file = name,
                                 .line = place.line,
                                 .column = place.column,
                                 .where = "",
                                 .what = "not JSON: " + error.message()});
  }
  const auto& values = parser.handler().values;
  const auto places = value_places(text);
  for (std::size_t i = 0; i < values.size() && i < places.size(); ++i) values[i]->place = places[i];
  return values.front();
}

}  // namespace config
