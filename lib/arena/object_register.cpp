#include "arena/object_register.hpp"

#include "arena/arena_state.hpp"
#include "base/report_text.hpp"

namespace tensorpool {
namespace {

arena::ObjectRegister& register_of(const Arena& arena, detail::ArenaState& state,
                                   const char* call) {
    if (state.objects != nullptr) return *state.objects;
    throw std::logic_error("tensorpool: arena '" + arena.name() + "': " + call +
                           ": the arena keeps no register of objects, expected one made with "
                           "ArenaOptions::objects");
}

}  // namespace

ObjectId Arena::record(const void* data, ObjectDescription object) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "record");
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(data) - begin;
    const std::size_t in_use = used();
    if (offset > in_use || object.bytes > in_use - offset) {
        throw std::invalid_argument("tensorpool: arena '" + name() + "': record: object '" +
                                    object.name + "' of " + std::to_string(object.bytes) +
                                    " B does not lie within the " + std::to_string(in_use) +
                                    " B in use");
    }
    return objects.add(offset, std::move(object));
}

ObjectId Arena::record_view(ObjectId of, std::size_t offset, ObjectDescription view) {
    return register_of(*this, *state_, "record_view")
        .add_view(of, offset, std::move(view), name())
        .id;
}

AllocatedObject Arena::allocate_object(ObjectDescription object, std::size_t header_bytes) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "allocate_object");
    arena::Header header = arena::make_header(header_bytes);
    const arena::ObjectRegister::Room room(objects);
    AllocatedObject made = {.header = header.get(), .data = allocate(object.bytes, alignment())};
    const std::size_t offset =
        made.data == nullptr ? used()
                             : static_cast<std::size_t>(static_cast<std::byte*>(made.data) - base_);
    made.id = objects.add(room, offset, std::move(object), std::move(header));
    return made;
}

AllocatedObject Arena::allocate_view(ObjectId of, std::size_t offset, ObjectDescription view,
                                     std::size_t header_bytes) {
    arena::ObjectRegister& objects = register_of(*this, *state_, "allocate_view");
    arena::Header header = arena::make_header(header_bytes);
    void* const of_view = header.get();
    // A handle that ends on another thread may remove the view, so only the register's answer
    // counts.
    const auto [id, begin] =
        objects.add_view(of, offset, std::move(view), name(), std::move(header));
    return {.id = id, .header = of_view, .data = base_ + begin};
}

std::vector<ArenaObject> Arena::objects() const {
    if (state_->objects == nullptr) return {};
    return state_->objects->objects();
}

ArenaAnalysis Arena::analyze() const {
    return arena::analyze(name(), used(), objects());
}

using base::add_line;
using base::BytesText;
using base::quoted;

namespace arena {
namespace {

using Word = std::string ObjectDescription::*;

std::vector<ObjectGroup> group_by(Word word, const std::vector<ArenaObject>& objects,
                                  std::size_t all_bytes) {
    std::map<std::string, ObjectGroup> groups;
    for (const ArenaObject& object : objects) {
        ObjectGroup& group = groups[object.description.*word];
        if (object.view_of != 0) {
            ++group.views;
        } else {
            ++group.count;
            group.bytes += object.description.bytes;
        }
    }
    std::vector<ObjectGroup> sorted;
    for (auto& [name, group] : groups) {
        group.name = name;
        group.percent = base::percent(group.bytes, all_bytes);
        sorted.push_back(std::move(group));
    }
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const ObjectGroup& one, const ObjectGroup& other) { return one.bytes > other.bytes; });
    return sorted;
}

}  // namespace

ArenaAnalysis analyze(const std::string& arena, std::size_t used,
                      const std::vector<ArenaObject>& objects) {
    ArenaAnalysis analysis;
    analysis.arena = arena;
    analysis.used = used;
    for (const ArenaObject& object : objects) {
        if (object.view_of != 0) {
            ++analysis.views;
        } else {
            ++analysis.count;
            analysis.bytes += object.description.bytes;
        }
    }
    analysis.by_kind = group_by(&ObjectDescription::kind, objects, analysis.bytes);
    analysis.by_element_type = group_by(&ObjectDescription::element_type, objects, analysis.bytes);
    return analysis;
}

}  // namespace arena

namespace {

std::string percent_text(double percent) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", percent);
    return text;
}

std::string groups_json(const std::vector<ObjectGroup>& groups) {
    return base::json_list(groups, [](const ObjectGroup& group) {
        return "{\"name\":" + quoted(group.name.c_str()) +
               ",\"count\":" + std::to_string(group.count) +
               ",\"views\":" + std::to_string(group.views) +
               ",\"bytes\":" + std::to_string(group.bytes) +
               ",\"percent\":" + percent_text(group.percent) + '}';
    });
}

void add_groups(std::string& out, const char* title, const std::vector<ObjectGroup>& groups) {
    add_line(out, "  %-20s %8s %8s %12s %8s", title, "objects", "views", "bytes", "share");
    for (const ObjectGroup& group : groups) {
        add_line(out, "  %-20.40s %8zu %8zu %12s %6.1f %%",
                 group.name.empty() ? "(none)" : group.name.c_str(), group.count, group.views,
                 BytesText(group.bytes).c_str(), group.percent);
    }
}

}  // namespace

std::string to_json(const ArenaAnalysis& analysis) {
    return "{\"arena\":" + quoted(analysis.arena.c_str()) +
           ",\"used\":" + std::to_string(analysis.used) +
           ",\"count\":" + std::to_string(analysis.count) +
           ",\"views\":" + std::to_string(analysis.views) +
           ",\"bytes\":" + std::to_string(analysis.bytes) +
           ",\"by_kind\":" + groups_json(analysis.by_kind) +
           ",\"by_element_type\":" + groups_json(analysis.by_element_type) + '}';
}

std::string to_text(const ArenaAnalysis& analysis) {
    std::string out;
    add_line(out, "tensorpool: arena '%.47s': %zu objects of %s and %zu views; %s in use",
             analysis.arena.c_str(), analysis.count, BytesText(analysis.bytes).c_str(),
             analysis.views, BytesText(analysis.used).c_str());
    if (analysis.count + analysis.views == 0) return out;
    add_groups(out, "kind", analysis.by_kind);
    add_groups(out, "element type", analysis.by_element_type);
    return out;
}

}  // namespace tensorpool
