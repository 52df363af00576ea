// What filters call an attribute: "author.name", "items.0", or an index. Private to the filters.
#pragma once

#include <string>
#include <vector>

#include "text/jinja_values.h"

namespace trtmc::jinja {

class AttributePath {
 public:
  // `attribute` as the filter got it; none or not set for the item itself.
  AttributePath(Interpreter& interpreter, const Value& attribute);

  // Where a step leads nowhere, `fallback` takes its place unless it is none.
  Value of(const Value& item, const Value& fallback = None{}) const;

 private:
  Interpreter& interpreter_;
  std::vector<Value> parts_;
};

// The keys that sorting and comparing filters use.
class ItemKey {
 public:
  ItemKey(Interpreter& interpreter, const Value& attribute, bool case_sensitive)
      : interpreter_(interpreter), path_(interpreter, attribute), case_sensitive_(case_sensitive) {}

  Value of(const Value& item, const Value& fallback = None{}) const;

 private:
  Interpreter& interpreter_;
  AttributePath path_;
  bool case_sensitive_;
};

}  // namespace trtmc::jinja
