// A model of the protocol by which entries are written into the timeline's ring and read from it,
// which statistics/timeline/timeline_ring.hpp describes. The test explores every order of the steps
// of three writers and a reader. Each step is one atomic access. The ring has two elements, so
// writers that sleep for a whole turn of the ring are common. The ring itself is tested in
// statistics/timeline/timeline_ring_test.cpp, where such orders are very rare.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool::statistics {
namespace {

enum class Fault {
    none,
    writes_unclaimed,      // the ticket is not odd while words are written
    steals_busy_elements,  // claims an element that another writer is writing
    writes_over_newer,     // claims an element that holds a later entry
    released_before_last,  // stores the even ticket before the last word
    claims_without_look,   // stores its odd ticket instead of exchanging it
    reads_without_second_look,
    reads_words_first,  // reads the ticket for the first time after the words
};

constexpr std::size_t ring_size = 2;
constexpr std::size_t words = 2;
constexpr std::uint64_t entries = 5;

struct Element {
    std::uint64_t ticket = 0;
    std::array<std::uint64_t, words> content = {};  // the number of the entry that wrote it
};

enum class WriterAt : std::uint8_t { number, ticket, claim, first_word, last_word, release, ended };

struct Writer {
    WriterAt at = WriterAt::number;
    std::uint64_t number = 0;
    std::uint64_t seen = 0;
    unsigned left = 2;  // entries to write
};

enum class ReaderAt : std::uint8_t { head, first_look, first_word, last_word, second_look, ended };

struct Reader {
    ReaderAt at = ReaderAt::head;
    std::uint64_t head = 0;
    std::uint64_t number = 0;
    std::uint64_t ticket = 0;
    std::array<std::uint64_t, words> content = {};
};

struct World {
    std::uint64_t head = 0;
    std::array<Element, ring_size> ring = {};
    std::array<Writer, 3> writers = {Writer{.left = 1}, Writer{}, Writer{}};
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
            visit(world, open);
        }
        return wrong_;
    }
    std::size_t states() const { return seen_.size(); }
    bool read_any() const { return read_any_; }

private:
    // Each value fits into a byte.
    static std::string key(const World& world) {
        std::string key;
        const auto add = [&](auto value) { key += static_cast<char>(value); };
        add(world.head);
        for (const Element& element : world.ring) {
            add(element.ticket);
            for (const std::uint64_t word : element.content) add(word);
        }
        for (const Writer& writer : world.writers) {
            add(writer.at), add(writer.number), add(writer.seen), add(writer.left);
        }
        const Reader& reader = world.reader;
        add(reader.at), add(reader.head), add(reader.number), add(reader.ticket);
        for (const std::uint64_t word : reader.content) add(word);
        return key;
    }

    void visit(const World& world, std::vector<World>& open) {
        bool moved = false;
        for (std::size_t number = 0; number < world.writers.size(); ++number) {
            if (world.writers[number].at == WriterAt::ended) continue;
            World next = world;
            step(next, next.writers[number]);
            check_step(world, next);
            open.push_back(next);
            moved = true;
        }
        if (!moved) check_end(world);
        if (world.reader.at == ReaderAt::ended) return;
        World next = world;
        step(next, next.reader);
        open.push_back(next);
    }

    void check_step(const World& world, const World& next) {
        for (std::size_t element = 0; element < ring_size; ++element) {
            if (next.ring[element].ticket / 2 < world.ring[element].ticket / 2) {
                wrong_ = "an older entry replaced a later one";
            }
        }
    }

    // Called when no writer is active any more.
    void check_end(const World& world) {
        if (world.head != entries) wrong_ = "a number was lost";
        for (const Element& element : world.ring) {
            if (element.ticket % 2 != 0) wrong_ = "an element is claimed forever";
            for (const std::uint64_t word : element.content) {
                if (whole_ticket(word) != element.ticket)
                    wrong_ = "a ticket belongs to another entry";
            }
        }
    }

    void step(World& world, Writer& writer) const {
        Element& element = world.ring[writer.number == 0 ? 0 : place_of(writer.number, ring_size)];
        switch (writer.at) {
            case WriterAt::number:
                writer.number = ++world.head;
                writer.at = WriterAt::ticket;
                return;
            case WriterAt::ticket:
                writer.seen = element.ticket;
                writer.at = WriterAt::claim;
                return;
            case WriterAt::claim:
                return claim(element, writer);
            case WriterAt::first_word:
                element.content[0] = writer.number;
                writer.at =
                    fault_ == Fault::released_before_last ? WriterAt::release : WriterAt::last_word;
                return;
            case WriterAt::last_word:
                element.content[1] = writer.number;
                if (fault_ == Fault::released_before_last) return finish(writer);
                writer.at = WriterAt::release;
                return;
            case WriterAt::release:
                element.ticket = whole_ticket(writer.number);
                if (fault_ != Fault::released_before_last) return finish(writer);
                writer.at = WriterAt::last_word;
                return;
            case WriterAt::ended:
                return;
        }
    }

    bool may_claim_here(const Writer& writer) const {
        if (fault_ == Fault::steals_busy_elements) return writer.seen < whole_ticket(writer.number);
        if (fault_ == Fault::writes_over_newer) return writer.seen % 2 == 0;
        return may_claim(writer.seen, writer.number);
    }

    void claim(Element& element, Writer& writer) const {
        if (!may_claim_here(writer)) return finish(writer);
        if (element.ticket != writer.seen && fault_ != Fault::claims_without_look) {
            writer.seen = element.ticket;  // the next step tries again
            return;
        }
        element.ticket = fault_ == Fault::writes_unclaimed ? whole_ticket(writer.number)
                                                           : busy_ticket(writer.number);
        writer.at = WriterAt::first_word;
    }

    static void finish(Writer& writer) {
        writer.at = --writer.left == 0 ? WriterAt::ended : WriterAt::number;
        writer.number = writer.seen = 0;
    }

    void step(World& world, Reader& reader) {
        const Element& element =
            world.ring[reader.number == 0 ? 0 : place_of(reader.number, ring_size)];
        const bool words_first = fault_ == Fault::reads_words_first;
        switch (reader.at) {
            case ReaderAt::head:
                reader.head = world.head;
                reader.number = reader.head - std::min<std::uint64_t>(reader.head, ring_size);
                return go_on(reader);
            case ReaderAt::first_look:
                reader.ticket = element.ticket;
                if (look_of(reader.ticket, reader.number) != EntryState::whole)
                    return go_on(reader);
                reader.at = words_first ? ReaderAt::second_look : ReaderAt::first_word;
                return;
            case ReaderAt::first_word:
                reader.content[0] = element.content[0];
                reader.at = ReaderAt::last_word;
                return;
            case ReaderAt::last_word:
                reader.content[1] = element.content[1];
                reader.at = words_first ? ReaderAt::first_look : ReaderAt::second_look;
                return;
            case ReaderAt::second_look:
                if (element.ticket == reader.ticket || fault_ == Fault::reads_without_second_look) {
                    take(reader);
                }
                return go_on(reader);
            case ReaderAt::ended:
                return;
        }
    }

    void go_on(Reader& reader) const {
        const bool more = reader.number != reader.head;
        reader = {.at = ReaderAt::ended, .head = reader.head, .number = reader.number + 1};
        if (!more) reader.number = 0;
        if (!more) return;
        reader.at =
            fault_ == Fault::reads_words_first ? ReaderAt::first_word : ReaderAt::first_look;
    }

    void take(const Reader& reader) {
        read_any_ = true;
        for (const std::uint64_t word : reader.content) {
            if (word != reader.number) wrong_ = "a reader accepted a half-written entry";
        }
    }

    Fault fault_;
    std::string wrong_;
    bool read_any_ = false;
    std::unordered_set<std::string> seen_;
};

TEST(TimelineModel, NoOrderOfStepsMixesTwoEntries) {
    Model model(Fault::none);
    EXPECT_EQ(model.walk(), "");
    EXPECT_TRUE(model.read_any());
    EXPECT_GT(model.states(), 100'000U);
}

TEST(TimelineModel, FindsEachPlantedFault) {
    for (const Fault fault :
         {Fault::writes_unclaimed, Fault::steals_busy_elements, Fault::writes_over_newer,
          Fault::released_before_last, Fault::claims_without_look, Fault::reads_without_second_look,
          Fault::reads_words_first}) {
        EXPECT_NE(Model(fault).walk(), "") << "fault " << static_cast<int>(fault);
    }
}

}  // namespace
}  // namespace tensorpool::statistics
