#pragma once

/// @file
/// The register of an arena's objects, as its users describe them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The number of an object in an arena's register; 0 is none.
using ObjectId = std::uint64_t;

/// A user's description of an object. Kinds and element types are the user's own terms, such as
/// "tensor", "graph" or "work buffer", and "f32" or "q4_0".
struct ObjectDescription {
    /// The object's name.
    std::string name;
    /// What the object is, such as "tensor".
    std::string kind;
    /// The type of its elements, such as "f32"; may be empty.
    std::string element_type = {};
    /// The extent of each dimension, in elements; may be empty.
    std::vector<std::size_t> shape = {};
    /// The object's size. For a view, the bytes that it shows: a view has no bytes of its own.
    std::size_t bytes = 0;
};

/// An object in the register of an arena.
struct ArenaObject {
    /// The object's number.
    ObjectId id = 0;
    /// The description that the user recorded.
    ObjectDescription description;
    /// Where the object begins, in bytes from the beginning of the arena.
    std::size_t offset = 0;
    /// The object that it is a view of; 0 for an object with bytes of its own.
    ObjectId view_of = 0;
    /// The object's header, if `Arena::allocate_object` or `Arena::allocate_view` made one;
    /// otherwise nullptr. It is valid as long as the object is in the register.
    void* header = nullptr;
};

/// An object that an arena made: its header and its data.
struct AllocatedObject {
    /// The object's number.
    ObjectId id = 0;
    /// The header: real memory, filled with zeros and aligned to 64, even if the arena only
    /// measures. nullptr if no header was requested.
    void* header = nullptr;
    /// The data, which must not be touched in a measuring arena. nullptr for an object of 0 bytes.
    void* data = nullptr;
};

/// The objects of one kind, or of one element type.
struct ObjectGroup {
    /// The kind or the element type.
    std::string name;
    /// The number of objects with bytes of their own.
    std::size_t count = 0;
    /// The number of views.
    std::size_t views = 0;
    /// The bytes of the objects that are no views.
    std::size_t bytes = 0;
    /// The part of all objects' bytes, from 0 to 100.
    double percent = 0;
};

/// The objects in an arena, by kind and by element type.
struct ArenaAnalysis {
    /// The arena's name.
    std::string arena;
    /// The bytes allocated, with or without a recorded object.
    std::size_t used = 0;
    /// The number of objects with bytes of their own.
    std::size_t count = 0;
    /// The number of views.
    std::size_t views = 0;
    /// The bytes of all objects that are no views.
    std::size_t bytes = 0;
    /// The objects by kind, the group with the most bytes first.
    std::vector<ObjectGroup> by_kind;
    /// The objects by element type, the group with the most bytes first.
    std::vector<ObjectGroup> by_element_type;
};

/// Returns one JSON object whose keys are the names of the fields of ArenaAnalysis.
TENSORPOOL_API std::string to_json(const ArenaAnalysis& analysis);
/// Returns a table for people that ends with a newline.
TENSORPOOL_API std::string to_text(const ArenaAnalysis& analysis);

}  // namespace tensorpool
