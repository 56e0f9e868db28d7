#pragma once

/// @file
/// What lies in an arena, as far as its users tell it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// An object of an arena's register. 0 is none.
using ObjectId = std::uint64_t;

/// What its user says of an object. Kinds and element types are words of the user's own, such as
/// "tensor", "graph", "work buffer", and "f32", "q4_0"; element type and shape may be empty.
struct ObjectDescription {
    std::string name;
    std::string kind;
    std::string element_type = {};
    std::vector<std::size_t> shape = {};
    /// Of a view: what it shows; a view has no bytes of its own.
    std::size_t bytes = 0;
};

/// An object in the register.
struct ArenaObject {
    ObjectId id = 0;
    ObjectDescription description;
    /// Where it begins, in bytes from the arena's beginning.
    std::size_t offset = 0;
    /// What it is a view of; 0 for an object with bytes of its own.
    ObjectId view_of = 0;
};

/// Objects that have a word in common.
struct ObjectGroup {
    std::string name;
    std::size_t count = 0;  ///< objects with bytes of their own
    std::size_t views = 0;
    std::size_t bytes = 0;  ///< of those that are no views
    double percent = 0;     ///< of the bytes of all objects
};

/// What an arena holds, by kind and by element type, the most bytes first.
struct ArenaAnalysis {
    std::string arena;
    std::size_t used = 0;  ///< bytes handed out, whether an object was told of or not
    std::size_t count = 0;
    std::size_t views = 0;
    std::size_t bytes = 0;
    std::vector<ObjectGroup> by_kind;
    std::vector<ObjectGroup> by_element_type;
};

/// One JSON object, the names those of the fields above.
TENSORPOOL_API std::string to_json(const ArenaAnalysis& analysis);
/// A table for people. Ends with a newline.
TENSORPOOL_API std::string to_text(const ArenaAnalysis& analysis);

}  // namespace tensorpool
