#include "arena/object_register.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arena/arena_test.hpp"
#include "pages/random.hpp"

namespace tensorpool::arena {
namespace {

ObjectDescription of(const char* name, std::size_t bytes) {
    return {.name = name, .kind = "tensor", .bytes = bytes};
}

class ObjectRegisterTest : public ::testing::Test {
protected:
    std::string names() const {
        std::string all;
        for (const ArenaObject& object : register_.objects()) all += object.description.name + " ";
        return all;
    }
    ObjectId view(ObjectId whole, std::size_t offset, const char* name, std::size_t bytes) {
        return register_.add_view(whole, offset, of(name, bytes), "mine").id;
    }
    std::string refusal_of_view(ObjectId whole, std::size_t offset, std::size_t bytes) {
        return testing::message_of<std::invalid_argument>([&] { view(whole, offset, "v", bytes); });
    }

    ObjectRegister register_;
};

TEST_F(ObjectRegisterTest, KeepsObjectsInOrder) {
    EXPECT_TRUE(register_.objects().empty());
    const ObjectId a = register_.add(
        128, {.name = "a", .kind = "tensor", .element_type = "f32", .shape = {2, 3}, .bytes = 24});
    const ObjectId b = register_.add(0, of("b", 100));
    const ObjectId c = view(a, 4, "c", 20);
    EXPECT_EQ(a, 1U);
    EXPECT_EQ(b, 2U);
    EXPECT_EQ(c, 3U);
    const std::vector<ArenaObject> objects = register_.objects();
    ASSERT_EQ(objects.size(), 3U);
    EXPECT_EQ(objects[0].id, a);
    EXPECT_EQ(objects[0].offset, 128U);
    EXPECT_EQ(objects[0].view_of, 0U);
    EXPECT_EQ(objects[0].description.name, "a");
    EXPECT_EQ(objects[0].description.kind, "tensor");
    EXPECT_EQ(objects[0].description.element_type, "f32");
    EXPECT_EQ(objects[0].description.shape, (std::vector<std::size_t>{2, 3}));
    EXPECT_EQ(objects[0].description.bytes, 24U);
    EXPECT_EQ(objects[2].view_of, a);
    EXPECT_EQ(objects[2].offset, 132U);
}

TEST_F(ObjectRegisterTest, ViewsOfViewsLieWithinThem) {
    const ObjectId whole = register_.add(1000, of("whole", 100));
    const ObjectId part = view(whole, 40, "part", 60);
    const auto [part_of_part, begin] = register_.add_view(part, 10, of("part of part", 50), "mine");
    EXPECT_EQ(begin, 1050U);
    EXPECT_EQ(register_.objects().back().offset, 1050U);
    EXPECT_EQ(register_.objects().back().view_of, part);
    EXPECT_EQ(view(part_of_part, 50, "nothing at its end", 0), 4U);
    EXPECT_NE(refusal_of_view(part, 10, 51), "");
}

TEST_F(ObjectRegisterTest, ViewThatReachesBeyondIsRefused) {
    const ObjectId whole = register_.add(0, of("whole", 100));
    EXPECT_EQ(refusal_of_view(whole, 60, 41),
              "tensorpool: arena 'mine': record_view: view 'v': 41 B at offset 60 reach beyond "
              "'whole', which has 100 B");
    EXPECT_NE(refusal_of_view(whole, 101, 0), "");
    EXPECT_NE(refusal_of_view(whole, SIZE_MAX, 2), "");
    EXPECT_NE(refusal_of_view(whole, 2, SIZE_MAX), "");
    EXPECT_EQ(refusal_of_view(whole, 0, 100), "");
    EXPECT_EQ(names(), "whole v ");
}

TEST_F(ObjectRegisterTest, ViewOfAnUnknownObjectIsRefused) {
    register_.add(0, of("a", 100));
    for (const ObjectId none : {ObjectId{0}, ObjectId{2}, ObjectId{UINT64_MAX}}) {
        EXPECT_EQ(refusal_of_view(none, 0, 0),
                  "tensorpool: arena 'mine': record_view: view 'v': there is no object " +
                      std::to_string(none));
    }
}

TEST_F(ObjectRegisterTest, ForgetsObjectsThatEndAboveAndTheirViews) {
    const ObjectId low = register_.add(0, of("low", 100));
    const ObjectId high = register_.add(128, of("high", 100));
    view(high, 0, "of_high", 1);
    view(low, 0, "of_low", 100);
    register_.forget_above(128);
    EXPECT_EQ(names(), "low of_low ");
    EXPECT_NE(refusal_of_view(high, 0, 0), "") << "the object of this number is gone";
    EXPECT_EQ(register_.add(128, of("next", 1)), 5U) << "numbers are not reused";
}

TEST_F(ObjectRegisterTest, ForgetsAnObjectThatAReleaseCutsThrough) {
    register_.add(0, of("cut", 100));
    register_.add(0, of("whole", 64));
    register_.forget_above(64);
    EXPECT_EQ(names(), "whole ");
}

TEST_F(ObjectRegisterTest, ViewOfAForgottenObjectIsForgotten) {
    const ObjectId whole = register_.add(0, of("whole", 200));
    const ObjectId front = view(whole, 0, "front", 10);
    view(front, 0, "front of front", 5);
    register_.add(0, of("other", 10));
    register_.forget_above(100);
    EXPECT_EQ(names(), "other ");
}

TEST_F(ObjectRegisterTest, ObjectWithoutBytesStaysUntilAReleaseBelowIt) {
    register_.add(128, of("above", 0));
    register_.add(64, of("at the offset", 0));
    register_.add(0, of("below", 0));
    register_.forget_above(64);
    EXPECT_EQ(names(), "at the offset below ");
    register_.forget_above(63);
    EXPECT_EQ(names(), "below ");
    register_.forget_above(0);
    EXPECT_EQ(names(), "");
}

TEST_F(ObjectRegisterTest, ForgetsWhatBeginsWithinABlockButNotWhatMayPrecedeIt) {
    register_.add(0, of("below", 64));
    register_.add(64, of("empty before it", 0));
    register_.add(64, of("first", 64));
    register_.add(100, of("empty within it", 0));
    register_.add(127, of("last", 1));
    register_.add(128, of("empty behind it", 0));
    register_.add(128, of("above", 64));
    register_.forget_within(64, 128);
    EXPECT_EQ(names(), "below empty before it empty behind it above ");
}

/// A reference implementation of the rules, which searches all objects for each view.
struct Reference {
    struct Object {
        ObjectId id, view_of;
        std::size_t begin, bytes;
    };
    bool has(ObjectId id) const {
        for (const Object& object : objects) {
            if (object.id == id) return true;
        }
        return false;
    }
    void forget_above(std::size_t offset) {
        std::erase_if(objects, [&](const Object& object) {
            return object.view_of == 0 &&
                   (offset == 0 || object.begin > offset || object.begin + object.bytes > offset);
        });
        while (std::erase_if(objects, [&](const Object& object) {
                   return object.view_of != 0 && !has(object.view_of);
               }) != 0) {
        }
    }
    std::vector<Object> objects;
};

TEST_F(ObjectRegisterTest, AgreesWithAReference) {
    testing::Random random(1);
    Reference reference;
    for (int step = 0; step < 5000; ++step) {
        const std::vector<Reference::Object>& known = reference.objects;
        if (random.one_in(30)) {
            const std::size_t offset = random.below(20) * 100;
            register_.forget_above(offset);
            reference.forget_above(offset);
        } else if (known.empty() || random.one_in(2)) {
            const std::size_t begin = random.below(40) * 50;
            const std::size_t bytes = random.below(5) * 50;
            reference.objects.push_back({register_.add(begin, of("o", bytes)), 0, begin, bytes});
        } else {
            const Reference::Object whole = known[random.below(known.size())];
            const std::size_t offset = random.below(whole.bytes + 1);
            const std::size_t bytes = random.below(whole.bytes - offset + 1);
            const ObjectId id = view(whole.id, offset, "v", bytes);
            reference.objects.push_back({id, whole.id, whole.begin + offset, bytes});
        }
        const std::vector<ArenaObject> objects = register_.objects();
        ASSERT_EQ(objects.size(), reference.objects.size());
        for (std::size_t i = 0; i < objects.size(); ++i) {
            ASSERT_EQ(objects[i].id, reference.objects[i].id);
            ASSERT_EQ(objects[i].view_of, reference.objects[i].view_of);
            ASSERT_EQ(objects[i].offset, reference.objects[i].begin);
        }
    }
}

TEST_F(ObjectRegisterTest, ThreadsMayRecordAtOnce) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int j = 0; j < 200; ++j) {
                const ObjectId id = register_.add(0, of("o", 8));
                EXPECT_NE(view(id, 4, "v", 4), 0U);
                EXPECT_TRUE(j % 50 != 0 || register_.objects().size() >= 2);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const std::vector<ArenaObject> objects = register_.objects();
    ASSERT_EQ(objects.size(), 1600U);
    for (std::size_t i = 0; i < objects.size(); ++i) EXPECT_EQ(objects[i].id, i + 1);
}

}  // namespace
}  // namespace tensorpool::arena
