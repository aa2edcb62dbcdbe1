// SPDX-License-Identifier: GPL-2.0-or-later
// YAML text to nodes, by yaml-cpp's events rather than its own nodes: those lose repeated keys and
// the place of empty values. Marks of yaml-cpp count from 0, ours from 1.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "config/tree.h"

namespace config {
namespace {

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

struct Refused {
  Place place;
  std::string what;
};

class Builder : public YAML::EventHandler {
 public:
  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refused{place_of(mark), "a second document; one is expected"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = make(Node::Kind::Null, mark, anchor);
    // The mark of an empty value is that of the next token: say where its key is instead.
    if (!open_.empty() && open_.back().awaits_value) {
      const Place key = open_.back().node->keys.back().place;
      if (node->place.line != key.line) node->place = key;
    }
    add(node);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{place_of(mark), "unknown alias"};
    for (const Open& open : open_)
      if (open.node == found->second)
        throw Refused{place_of(mark), "an alias inside of what it names"};
    add(found->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = make(Node::Kind::Scalar, mark, anchor);
    node->quoted = tag != "?";
    node->text = value;
    add(node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Node::Kind::List, mark, anchor));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Node::Kind::Map, mark, anchor));
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    std::shared_ptr<Node> node;
    bool awaits_value = false;  // a map whose key has been seen
  };

  std::shared_ptr<Node> make(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->place = place_of(mark);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    return node;
  }
  void open(const std::shared_ptr<Node>& node) {
    add(node);
    open_.push_back({node, false});
  }
  void add(const std::shared_ptr<Node>& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& parent = open_.back();
    if (parent.node->kind == Node::Kind::Map && !parent.awaits_value) {
      parent.node->keys.push_back({node->text, node->place, node->kind == Node::Kind::Scalar});
      parent.awaits_value = true;
      return;
    }
    parent.node->items.push_back(node);
    parent.awaits_value = false;
  }

  std::shared_ptr<Node> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<Node>> anchors_;
  int documents_ = 0;
};

Error yaml_error(const std::string& name, Place place, const std::string& what) {
  return {.file = name, .line = place.line, .column = place.column, .where = "", .what = what};
}

}  // namespace

std::expected<NodePtr, Error> parse_yaml(const std::string& name, const std::string& text) {
  Builder builder;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    return std::unexpected(yaml_error(name, place_of(e.mark), "not YAML: " + e.msg));
  } catch (const Refused& e) {
    return std::unexpected(yaml_error(name, e.place, e.what));
  }
  if (!builder.root()) return std::unexpected(yaml_error(name, {}, "the file is empty"));
  return builder.root();
}

}  // namespace config
