#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include <tensorpool/arena_objects.hpp>

#include "base/lockable.hpp"

namespace tensorpool::arena {

inline constexpr std::align_val_t header_alignment{64};
struct HeaderDeleter {
    void operator()(std::byte* header) const noexcept {
        ::operator delete(header, header_alignment);
    }
};
/// The memory of an object's header. It lies outside of the arena, so it is real even if the arena
/// only measures.
using Header = std::unique_ptr<std::byte, HeaderDeleter>;

/// Makes a header of zeros, aligned to 64; null for 0 bytes. Throws std::bad_alloc.
inline Header make_header(std::size_t bytes) {
    if (bytes == 0) return {};
    if (bytes > PTRDIFF_MAX)
        throw std::bad_alloc();  // rounded up to the alignment, SIZE_MAX would be 0
    void* const header = ::operator new(bytes, header_alignment);
    std::memset(header, 0, bytes);
    return Header(static_cast<std::byte*>(header));
}

inline constexpr auto id_of = [](const auto& entry) { return entry.object.id; };

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
    ObjectId add(std::size_t offset, ObjectDescription object) {
        const std::lock_guard guard(mutex_);
        reserve(1);
        return append({.description = std::move(object), .offset = offset}, {});
    }
    /// Adds an object at `offset`, for which there is room. REQUIRES: its bytes are in use. The
    /// room still counts until it is destroyed, which only makes the register larger than needed.
    ObjectId add(const Room&, std::size_t offset, ObjectDescription object,
                 Header header) noexcept {
        const std::lock_guard guard(mutex_);
        return append({.description = std::move(object), .offset = offset}, std::move(header));
    }
    /// Adds a view that begins `offset` bytes into the object `of`. Throws std::invalid_argument,
    /// naming `arena`, if there is no such object or the view reaches beyond it.
    AddedView add_view(ObjectId of, std::size_t offset, ObjectDescription view,
                       const std::string& arena, Header header = {}) {
        const auto refuse = [&](const std::string& what) {
            throw std::invalid_argument("tensorpool: arena '" + arena + "': record_view: view '" +
                                        view.name + "': " + what);
        };
        const std::lock_guard guard(mutex_);
        const ArenaObject* const whole = find(of);
        if (whole == nullptr) refuse("there is no object " + std::to_string(of));
        const std::size_t room = whole->description.bytes;
        if (offset > room || view.bytes > room - offset) {
            refuse(std::to_string(view.bytes) + " B at offset " + std::to_string(offset) +
                   " reach beyond '" + whole->description.name + "', which has " +
                   std::to_string(room) + " B");
        }
        const std::size_t begin = whole->offset + offset;
        reserve(1);
        const ObjectId id = append({.description = std::move(view), .offset = begin, .view_of = of},
                                   std::move(header));
        return {id, begin};
    }
    /// Removes the objects that end above `offset`, and the views of them, with their headers; all
    /// objects if `offset` is 0. An object of 0 bytes at `offset` stays: it may be older than a
    /// mark there.
    void forget_above(std::size_t offset) noexcept {
        forget([offset](const ArenaObject& object) {
            return offset == 0 || object.offset + object.description.bytes > offset;
        });
    }
    /// Removes the objects that begin within [begin, end), and the views of them. An object of 0
    /// bytes at `begin` stays.
    void forget_within(std::size_t begin, std::size_t end) noexcept {
        forget([begin, end](const ArenaObject& object) {
            const bool may_precede = object.offset == begin && object.description.bytes == 0;
            return object.offset >= begin && object.offset < end && !may_precede;
        });
    }

    std::vector<ArenaObject> objects() const {
        const std::lock_guard guard(mutex_);
        std::vector<ArenaObject> copies;
        copies.reserve(entries_.size());
        for (const Entry& entry : entries_) copies.push_back(entry.object);
        return copies;
    }

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
    ObjectId append(ArenaObject object, Header header) noexcept {
        object.id = ++last_;
        object.header = header.get();
        entries_.push_back({std::move(object), std::move(header)});
        return last_;
    }
    template <class Predicate>
    // A view ends with the object that it shows, even if the part that it shows stays.
    void forget(Predicate is_gone) noexcept {
        const std::lock_guard guard(mutex_);
        auto kept = entries_.begin();
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
            const ArenaObject& object = entry->object;
            const bool gone = is_gone(object);
            const auto of =
                std::ranges::lower_bound(entries_.begin(), kept, object.view_of, {}, id_of);
            const bool stays =
                object.view_of == 0 ? !gone : of != kept && of->object.id == object.view_of;
            if (!stays) continue;
            if (kept != entry) *kept = std::move(*entry);
            ++kept;
        }
        entries_.erase(kept, entries_.end());
    }
    const ArenaObject* find(ObjectId id) const noexcept {
        const auto at = std::ranges::lower_bound(entries_, id, {}, id_of);
        return at != entries_.end() && at->object.id == id ? &at->object : nullptr;
    }

    std::vector<Entry> entries_;
    // The rooms that exist: so many objects must fit behind the present ones.
    std::size_t rooms_ = 0;
    ObjectId last_ = 0;
};

/// Sums up objects by kind and by element type.
ArenaAnalysis analyze(const std::string& arena, std::size_t used,
                      const std::vector<ArenaObject>& objects);

}  // namespace tensorpool::arena
