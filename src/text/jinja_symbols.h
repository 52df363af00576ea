// The names of a template's scopes while they are analysed. Private to jinja_scopes.cc.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "text/jinja_ast.h"

namespace trtmc::jinja {

// A function under resolution; `level` counts the functions around it.
struct FunctionContext {
  Function& function;
  int level;
};

struct Reference {
  const FunctionContext* function;
  int slot;
};

// The variables of one scope. A branch of an `if` has an object of its own for what it adds to
// them, over the one of the scope outside; the slots are shared.
class Symbols {
 public:
  Symbols(FunctionContext& function, const Symbols* parent)
      : function_(&function),
        parent_(parent),
        slots_(std::make_shared<std::map<std::string, int>>()) {}

  // Of a branch, until merge_branches() takes it in.
  Symbols branch() const {
    Symbols result(*function_, parent_, slots_);
    result.outside_branch_ = this;
    return result;
  }

  FunctionContext& function() const { return *function_; }

  std::optional<Reference> find(const std::string& name) const {
    if (const auto slot = slot_of(name)) return Reference{function_, *slot};
    return parent_ ? parent_->find(name) : std::nullopt;
  }
  Place place(const std::string& name) const {
    const auto reference = find(name);
    TRTMC_CHECK(reference, "every name was seen by the analysis");
    return place_of(*reference);
  }

  void store(const std::string& name) {
    stores_.insert(name);
    if (slot_of(name)) return;
    const auto outer = parent_ ? parent_->find(name) : std::nullopt;
    if (outer) {
      define(name, {VariableStart::Kind::kAlias, 0, {}, place_of(*outer)});
    } else {
      define(name, {VariableStart::Kind::kUnset, 0, {}, {}});
    }
  }
  int declare_parameter(const std::string& name) {
    stores_.insert(name);
    return define(name, {VariableStart::Kind::kParameter, 0, {}, {}});
  }
  void load(const std::string& name) {
    if (!find(name)) define(name, {VariableStart::Kind::kResolve, 0, name, {}});
  }

  // Takes in what the branches of an `if` do. A variable that only some of them store starts as
  // what it is outside.
  void merge_branches(std::initializer_list<const Symbols*> branches) {
    std::set<std::string> stored;
    for (const Symbols* branch : branches) {
      for (const std::string& name : branch->stores_) {
        if (!stores(name)) stored.insert(name);
      }
    }
    for (const Symbols* branch : branches) {
      references_.insert(branch->references_.begin(), branch->references_.end());
      for (const auto& [slot, start] : branch->starts_) starts_[slot] = start;
      stores_.insert(branch->stores_.begin(), branch->stores_.end());
    }
    for (const std::string& name : stored) {
      const int slot = *slot_of(name);
      const auto outer = parent_ ? parent_->find(name) : std::nullopt;
      starts_[slot] = outer ? VariableStart{VariableStart::Kind::kAlias, slot, {}, place_of(*outer)}
                            : VariableStart{VariableStart::Kind::kResolve, slot, name, {}};
    }
  }

  // Of a scope, not of a branch.
  Scope scope() const {
    Scope result;
    for (const auto& [slot, start] : starts_) result.push_back(start);
    return result;
  }

 private:
  Symbols(FunctionContext& function, const Symbols* parent,
          std::shared_ptr<std::map<std::string, int>> slots)
      : function_(&function), parent_(parent), slots_(std::move(slots)) {}

  // In this scope, seen from this branch.
  std::optional<int> slot_of(const std::string& name) const {
    for (const Symbols* symbols = this; symbols; symbols = symbols->outside_branch_) {
      const auto found = symbols->references_.find(name);
      if (found != symbols->references_.end()) return found->second;
    }
    return std::nullopt;
  }
  bool stores(const std::string& name) const {
    for (const Symbols* symbols = this; symbols; symbols = symbols->outside_branch_) {
      if (symbols->stores_.contains(name)) return true;
    }
    return false;
  }
  Place place_of(const Reference& reference) const {
    return {function_->level - reference.function->level, reference.slot};
  }
  int define(const std::string& name, VariableStart start) {
    const auto [slot, added] = slots_->try_emplace(name, function_->function.num_slots);
    if (added) ++function_->function.num_slots;
    start.slot = slot->second;
    references_[name] = start.slot;
    starts_[start.slot] = std::move(start);
    return slot->second;
  }

  FunctionContext* function_;
  const Symbols* parent_;                    // The scope around this one.
  const Symbols* outside_branch_ = nullptr;  // Of a branch: the same scope outside the `if`.
  std::shared_ptr<std::map<std::string, int>> slots_;
  std::map<std::string, int> references_;
  std::map<int, VariableStart> starts_;
  std::set<std::string> stores_;
};

}  // namespace trtmc::jinja
