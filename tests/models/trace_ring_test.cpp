// A model of the protocol by which a recorded thread and its recorder share a ring, which
// trace/ring_layout.hpp describes. The test explores every order of the steps of the reader and of
// two threads that own the ring one after the other. Each step is one atomic access. The ring has
// three entries, so it is often full. The process may be killed after every step: entries that are
// written and not yet read must be whole then.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "trace/ring_layout.hpp"

namespace tensorpool::trace {
namespace {

enum class Fault {
    none,
    counts_before_last_word,  // an entry counts as written before it is whole
    writes_into_full_ring,    // instead of dropping entries
    has_one_entry_too_many,   // takes a full ring for one with room for an entry
    drops_uncounted,
    stores_tail_before_it_read,
    next_thread_skips_the_look,  // takes the ring for empty
    names_after_entry,           // the writer's name of an entry comes after it
    reads_names_before_counts,   // the reader reads the names first
    writes_half_a_stack,
};

constexpr std::uint64_t ring_size = 3;
constexpr std::size_t words = 2;
constexpr std::uint64_t stack_pieces = 2;

/// The content of an entry: the number of its call, and the piece of that call's stack; 0: the call
/// itself.
struct Content {
    std::uint8_t call = 0;
    std::uint8_t piece = 0;
    friend bool operator==(const Content&, const Content&) = default;
};
using Element = std::array<Content, words>;

enum class WriterAt : std::uint8_t {
    take_ring,
    name,
    look_for_room,
    drop,
    first_word,
    last_word,
    count,
    look_for_stack_room,
    ended
};

/// The thread that owns the ring, and its successor.
struct Writer {
    WriterAt at = WriterAt::take_ring;
    std::uint8_t next = 0;
    std::uint8_t room_until = 0;
    std::uint8_t calls_left = 2;
    std::uint8_t piece = 0;
};

enum class ReaderAt : std::uint8_t { count, names, first_word, last_word, store_tail, ended };

struct Reader {
    ReaderAt at = ReaderAt::count;
    std::uint8_t looks_left = 3;
    std::uint8_t until = 0;
    std::uint8_t from = 0;
    std::uint8_t names = 0;  // known to the reader
    Content first = {};
    Content last_taken = {};
    std::uint8_t taken = 0;
};

struct World {
    std::uint8_t written = 0;
    std::uint8_t dropped = 0;
    std::uint8_t tail = 0;
    std::uint8_t names = 0;
    std::uint8_t calls = 0;  // begun so far
    std::array<Element, ring_size> ring = {};
    /// The expected content of each entry, for the checks only.
    std::array<Content, 12> written_ever = {};
    std::array<Writer, 2> writers = {};
    Reader reader;
};

class Model {
public:
    explicit Model(Fault fault) : fault_(fault) {}

    /// Returns an empty string, or what went wrong in one order of the steps.
    std::string walk() {
        std::vector<World> open = {World{}};
        while (!open.empty() && wrong_.empty()) {
            const World world = open.back();
            open.pop_back();
            if (!seen_.insert(key(world)).second) continue;
            check(world);
            visit(world, open);
        }
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }
    bool has_taken() const { return has_taken_; }
    bool has_dropped() const { return has_dropped_; }
    bool has_left_out_a_stack() const { return has_left_out_a_stack_; }

private:
    static_assert(std::has_unique_object_representations_v<World>);
    static std::string key(const World& world) {
        return {reinterpret_cast<const char*>(&world), sizeof world};
    }

    void visit(const World& world, std::vector<World>& open) {
        bool moved = false;
        // The second thread gets the ring after the first has ended.
        const std::size_t owner = world.writers[0].at == WriterAt::ended ? 1 : 0;
        if (world.writers[owner].at != WriterAt::ended) {
            open.push_back(world);
            step(open.back(), open.back().writers[owner]);
            moved = true;
        }
        if (world.reader.at != ReaderAt::ended) {
            open.push_back(world);
            step(open.back(), open.back().reader);
            moved = true;
        }
        if (!moved) check_end(world);
    }

    void step(World& world, Writer& writer) {
        switch (writer.at) {
            case WriterAt::take_ring:
                writer.next = writer.room_until = world.written;
                if (fault_ == Fault::next_thread_skips_the_look) writer.room_until += ring_size;
                return begin_call(world, writer);
            case WriterAt::name:
                ++world.names;
                if (fault_ == Fault::names_after_entry) return after_call(world, writer);
                return begin_entry(writer);
            case WriterAt::look_for_room:
                writer.room_until = look(world, writer);
                writer.at =
                    writer.next == writer.room_until ? WriterAt::drop : WriterAt::first_word;
                return;
            case WriterAt::drop:
                if (fault_ != Fault::drops_uncounted) ++world.dropped;
                has_dropped_ = true;
                if (fault_ == Fault::names_after_entry) ++world.names;
                return end_call(world, writer);
            case WriterAt::first_word:
                element_of(world, writer.next)[0] = content_of(world, writer);
                writer.at = fault_ == Fault::counts_before_last_word ? WriterAt::count
                                                                     : WriterAt::last_word;
                return;
            case WriterAt::last_word:
                element_of(world, writer.next)[1] = content_of(world, writer);
                if (fault_ == Fault::counts_before_last_word) {
                    ++writer.next;
                    return after_entry(world, writer);
                }
                writer.at = WriterAt::count;
                return;
            case WriterAt::count:
                world.written_ever[writer.next] = content_of(world, writer);
                world.written = static_cast<std::uint8_t>(writer.next + 1);
                if (fault_ == Fault::counts_before_last_word) {
                    writer.at = WriterAt::last_word;
                    return;
                }
                ++writer.next;
                return after_entry(world, writer);
            case WriterAt::look_for_stack_room:
                writer.room_until = look(world, writer);
                return begin_stack(world, writer);
            case WriterAt::ended:
                return;
        }
    }

    std::uint8_t look(const World& world, const Writer& writer) const {
        const std::uint64_t more = fault_ == Fault::has_one_entry_too_many ? 1 : 0;
        if (fault_ == Fault::writes_into_full_ring) {
            return static_cast<std::uint8_t>(writer.next + ring_size);
        }
        return static_cast<std::uint8_t>(room_until(writer.next, world.tail, ring_size + more));
    }

    static Element& element_of(World& world, std::uint64_t entry) {
        return world.ring[entry % ring_size];
    }
    static Content content_of(const World& world, const Writer& writer) {
        return {world.calls, writer.piece};
    }

    void begin_call(World& world, Writer& writer) const {
        ++world.calls;
        writer.piece = 0;
        if (fault_ == Fault::names_after_entry) return begin_entry(writer);
        writer.at = WriterAt::name;
    }
    static void begin_entry(Writer& writer) {
        writer.at =
            writer.next == writer.room_until ? WriterAt::look_for_room : WriterAt::first_word;
    }
    void after_entry(World& world, Writer& writer) {
        if (writer.piece == 0) {
            if (fault_ == Fault::names_after_entry) {
                writer.at = WriterAt::name;
                return;
            }
            return after_call(world, writer);
        }
        if (writer.piece == stack_pieces) return end_call(world, writer);
        ++writer.piece;
        begin_entry(writer);
    }
    // Writes the stack of a call: as many entries as it needs, or none.
    void after_call(World& world, Writer& writer) {
        if (has_stack_room(writer)) return begin_stack(world, writer);
        writer.at = WriterAt::look_for_stack_room;
    }
    bool has_stack_room(const Writer& writer) const {
        const std::uint64_t wanted = fault_ == Fault::writes_half_a_stack ? 1 : stack_pieces;
        return static_cast<std::uint64_t>(writer.room_until - writer.next) >= wanted;
    }
    void begin_stack(World& world, Writer& writer) {
        if (!has_stack_room(writer)) {
            has_left_out_a_stack_ = true;
            return end_call(world, writer);
        }
        writer.piece = 1;
        begin_entry(writer);
    }
    void end_call(World& world, Writer& writer) {
        writer.piece = 0;
        if (--writer.calls_left == 0) {
            writer.at = WriterAt::ended;
        } else {
            begin_call(world, writer);
        }
    }

    void step(World& world, Reader& reader) {
        switch (reader.at) {
            case ReaderAt::count:
                reader.until = world.written;
                reader.from = world.tail;
                if (fault_ == Fault::reads_names_before_counts) return begin_reading(world, reader);
                reader.at = ReaderAt::names;
                return;
            case ReaderAt::names:
                reader.names = world.names;
                if (fault_ == Fault::reads_names_before_counts) {
                    reader.at = ReaderAt::count;
                    return;
                }
                return begin_reading(world, reader);
            case ReaderAt::first_word:
                reader.first = element_of(world, reader.from)[0];
                reader.at = ReaderAt::last_word;
                return;
            case ReaderAt::last_word:
                take(world, reader, element_of(world, reader.from)[1]);
                ++reader.from;
                if (fault_ == Fault::stores_tail_before_it_read) return go_on(reader);
                reader.at = ReaderAt::store_tail;
                return;
            case ReaderAt::store_tail:
                if (fault_ == Fault::stores_tail_before_it_read) {
                    world.tail = reader.until;
                    reader.at = ReaderAt::first_word;
                    return;
                }
                world.tail = reader.from;
                return go_on(reader);
            case ReaderAt::ended:
                return;
        }
    }

    void begin_reading(World&, Reader& reader) const {
        if (reader.from == reader.until) return end_look(reader);
        const bool early = fault_ == Fault::stores_tail_before_it_read;
        reader.at = early ? ReaderAt::store_tail : ReaderAt::first_word;
    }
    void go_on(Reader& reader) const {
        if (reader.from == reader.until) return end_look(reader);
        reader.at = ReaderAt::first_word;
    }
    void end_look(Reader& reader) const {
        const bool early = fault_ == Fault::reads_names_before_counts;
        reader.first = {};
        --reader.looks_left;
        reader.at = reader.looks_left == 0 ? ReaderAt::ended
                    : early                ? ReaderAt::names
                                           : ReaderAt::count;
    }

    void take(const World& world, Reader& reader, Content last) {
        has_taken_ = true;
        if (reader.first != last) wrong_ = "a reader accepted a half-written entry";
        if (last != world.written_ever[reader.from]) wrong_ = "a reader read another entry";
        if (reader.from != reader.taken) wrong_ = "a reader skipped an entry, or read it twice";
        if (last.call > reader.names) wrong_ = "a reader read an entry without its name";
        const bool goes_on = last.call == reader.last_taken.call;
        if (last.piece != (goes_on ? reader.last_taken.piece + 1 : 0)) {
            wrong_ = "a piece of a stack is out of order";
        }
        const std::uint8_t before = reader.last_taken.piece;
        if (!goes_on && before != 0 && before != stack_pieces) wrong_ = "half a stack was read";
        reader.last_taken = last;
        ++reader.taken;
    }

    // Checks what a killed process leaves behind.
    void check(const World& world) {
        for (std::uint64_t entry = world.tail; entry < world.written; ++entry) {
            for (const Content& word : world.ring[entry % ring_size]) {
                if (word != world.written_ever[entry]) wrong_ = "a killed process loses an entry";
            }
        }
    }

    void check_end(const World& world) {
        std::uint64_t calls = 0;
        for (std::uint64_t entry = 0; entry < world.written; ++entry) {
            if (world.written_ever[entry].piece == 0) ++calls;
        }
        if (calls + world.dropped != world.calls) wrong_ = "a call is neither written nor counted";
    }

    Fault fault_;
    std::string wrong_;
    bool has_taken_ = false;
    bool has_dropped_ = false;
    bool has_left_out_a_stack_ = false;
    std::unordered_set<std::string> seen_;
};

TEST(TraceRingModel, NoOrderOfStepsLosesOrMixesEntries) {
    Model model(Fault::none);
    EXPECT_EQ(model.walk(), "");
    EXPECT_TRUE(model.has_taken());
    EXPECT_TRUE(model.has_dropped());
    EXPECT_TRUE(model.has_left_out_a_stack());
    EXPECT_GT(model.states(), 1000U);
}

TEST(TraceRingModel, FindsEachPlantedFault) {
    for (const Fault fault :
         {Fault::counts_before_last_word, Fault::writes_into_full_ring,
          Fault::has_one_entry_too_many, Fault::drops_uncounted, Fault::stores_tail_before_it_read,
          Fault::next_thread_skips_the_look, Fault::names_after_entry,
          Fault::reads_names_before_counts, Fault::writes_half_a_stack}) {
        EXPECT_NE(Model(fault).walk(), "") << "fault " << static_cast<int>(fault);
    }
}

// A stored tail is trusted only if it is a possible value: any process of the same user may have
// written it.
TEST(TraceRingModel, NoTailMakesRoomInAFullRing) {
    constexpr std::uint64_t far = 100;
    for (std::uint64_t next = far; next < far + 2 * ring_size; ++next) {
        for (std::uint64_t tail = 0; tail < 2 * far; ++tail) {
            const bool has_room = tail <= next && next < tail + ring_size;
            EXPECT_EQ(room_until(next, tail, ring_size), has_room ? tail + ring_size : next)
                << next << ' ' << tail;
        }
    }
}

}  // namespace
}  // namespace tensorpool::trace
