#pragma once

#include <memory>

#include <tensorpool/arena_objects.hpp>

#include "base/lockable.hpp"

namespace tensorpool::arena {

struct HeaderDeleter {
    void operator()(std::byte* header) const noexcept;
};
/// The memory of an object's header. It lies outside of the arena, so it is real even if the arena
/// only measures.
using Header = std::unique_ptr<std::byte, HeaderDeleter>;
/// Makes a header of zeros, aligned to 64; null for 0 bytes. Throws std::bad_alloc.
Header make_header(std::size_t bytes);

/// The objects of one arena, in the order of their recording. Thread-safe.
class ObjectRegister : public base::Lockable {
public:
    /// Room for one object. It is made before the object's data is allocated, so that recording the
    /// object cannot fail afterwards.
    class Room {
    public:
        /// Throws std::bad_alloc if there is no memory.
        explicit Room(ObjectRegister& objects) : objects_(&objects) { objects.make_room(); }
        ~Room() { objects_->give_up_room(); }
        Room(const Room&) = delete;
        Room& operator=(const Room&) = delete;

    private:
        ObjectRegister* objects_;
    };

    /// A view in the register, and where it begins in the arena.
    struct AddedView {
        ObjectId id;
        std::size_t offset;
    };

    /// Adds an object at `offset`. REQUIRES: its bytes are in use.
    ObjectId add(std::size_t offset, ObjectDescription object);
    /// Adds an object at `offset`, for which there is room. REQUIRES: its bytes are in use.
    ObjectId add(const Room& room, std::size_t offset, ObjectDescription object,
                 Header header) noexcept;
    /// Adds a view that begins `offset` bytes into the object `of`. Throws std::invalid_argument,
    /// naming `arena`, if there is no such object or the view reaches beyond it.
    AddedView add_view(ObjectId of, std::size_t offset, ObjectDescription view,
                       const std::string& arena, Header header = {});
    /// Removes the objects that end above `offset`, and the views of them, with their headers; all
    /// objects if `offset` is 0. An object of 0 bytes at `offset` stays: it may be older than a
    /// mark there.
    void forget_above(std::size_t offset) noexcept;
    /// Removes the objects that begin within [begin, end), and the views of them. An object of 0
    /// bytes at `begin` stays.
    void forget_within(std::size_t begin, std::size_t end) noexcept;

    std::vector<ArenaObject> objects() const;

private:
    struct Entry {
        ArenaObject object;
        Header header;
    };

    void make_room() {
        const std::lock_guard guard(mutex_);
        reserve(1);
        ++rooms_;
    }
    void give_up_room() noexcept {
        const std::lock_guard guard(mutex_);
        --rooms_;
    }
    void reserve(std::size_t more) {
        const std::size_t needed = entries_.size() + rooms_ + more;
        if (needed > entries_.capacity())
            entries_.reserve(std::max(needed, 2 * entries_.capacity()));
    }
    ObjectId append(ArenaObject object, Header header) noexcept;
    template <class Predicate>
    void forget(Predicate is_gone) noexcept;
    const ArenaObject* find(ObjectId id) const noexcept;

    std::vector<Entry> entries_;
    // The rooms that exist: so many objects must fit behind the present ones.
    std::size_t rooms_ = 0;
    ObjectId last_ = 0;
};

/// Sums up objects by kind and by element type.
ArenaAnalysis analyze(const std::string& arena, std::size_t used,
                      const std::vector<ArenaObject>& objects);

}  // namespace tensorpool::arena
