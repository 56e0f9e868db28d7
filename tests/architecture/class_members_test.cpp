#include "architecture/class_members.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tensorpool::architecture {
namespace {

using Names = std::vector<std::string>;

/// Returns the functions of the only class in a text.
Names functions_in(std::string_view text) {
    const std::vector<ClassMembers> classes = classes_in(text);
    return classes.size() == 1 ? classes[0].functions : Names{"not one class"};
}

TEST(ClassMembers, CountsEveryOverloadOperatorTemplateAndStaticFunction) {
    EXPECT_EQ(functions_in(R"(
        struct A {
            void f();
            int f(int) const noexcept { return g() ? 1 : 2; }
            static A* g();
            template <class T, class U = std::vector<T>>
                requires std::integral<T> && (sizeof(T) < 4)
            auto h(T t) -> decltype(t.x());
            A& operator=(int);
            bool operator()(int a) const;
            bool operator<(const A&) const;
            explicit operator std::vector<int>() const;
            std::function<void(int)> made() const;
            virtual void pure() = 0;
        };)"),
              (Names{"f", "f", "g", "h", "operator=", "operator()", "operator<",
                     "operator std::vector<int>", "made", "pure"}));
}

TEST(ClassMembers, CountsNoConstructorDestructorFriendOrDefaultedFunction) {
    EXPECT_EQ(functions_in(R"(
        template <class T>
        class A final {
        public:
            explicit A(int x) : B(x), x_{x}, y_(f(x)...) { g(); }
            constexpr A() noexcept;
            A(const A&) = delete;
            A& operator=(const A&) = default;
            ~A();
            virtual ~A() {}
            friend void f(int);
            friend bool operator==(const A&, const A&) { return h(); }
            template <class U> friend class C;
        };)"),
              Names{});
}

TEST(ClassMembers, CountsNoData) {
    EXPECT_EQ(functions_in(R"(
        struct A {
            int x = f(1), z{g(2)};
            std::function<void(int)> y;
            void (*pointer)(int) = nullptr;
            std::size_t (B::*member)(int) noexcept;
            std::array<int, std::size_t{1} << (6 - 2)> table = {};
            alignas(64) std::atomic<int> word{0};
            int guarded TENSORPOOL_GUARDED_BY(lock);
            [[maybe_unused]] unsigned bits : 3;
            using F = int (*)(int);
            static_assert(sizeof(int) == 4);
            enum class E : int { a = f(1), b };
        };)"),
              Names{});
}

TEST(ClassMembers, IgnoresCommentsTextsAndLaterBranchesOfConditions) {
    EXPECT_EQ(functions_in(R"(
        struct A {
            // void f();
            /* void g(); } */
            const char* text = "}; void h() {";
            const char* raw = R"x(} void h() ")x";
            char c = '}';
            int n = 1'000;
        #if X
            void in_first();
        #  if Y
        #  else
            void unread() {
        #  endif
        #elif Z
            void unread() {
        #  if Y
        #  endif
        #endif
            void last();
        };)"),
              (Names{"in_first", "last"}));
}

TEST(ClassMembers, NamesClassesByTheirScopes) {
    const std::vector<ClassMembers> classes = classes_in(R"(
        namespace a::b {
        extern "C" {
        struct A;
        struct A* make();
        }
        inline namespace v1 { namespace {
        class MACRO(x) alignas(64) A : public B<int>, private virtual c::D {
            struct Part { void f() override; } part;
            void g() final;
        };
        } }
        void A::g() { struct Local { void f(); }; }
        A::A() : x{1}, y(2) {}
        struct a::b::Outside {};
        })");
    ASSERT_EQ(classes.size(), 3u);
    EXPECT_EQ(classes[0].name, "a::b::v1::A::Part");
    EXPECT_EQ(classes[0].overrides, Names{"f"});
    EXPECT_EQ(classes[1].name, "a::b::v1::A");
    EXPECT_EQ(classes[1].line, 8);
    EXPECT_EQ(classes[1].bases, (Names{"B", "c::D"}));
    EXPECT_EQ(classes[1].functions, Names{"g"});
    EXPECT_EQ(classes[1].overrides, Names{"g"});
    EXPECT_EQ(classes[2].name, "a::b::a::b::Outside");
}

TEST(ClassMembers, RejectsBracketsWithoutPartner) {
    EXPECT_THROW(classes_in("struct A { void f() { };"), std::runtime_error);
    EXPECT_THROW(classes_in("struct A { }; }"), std::runtime_error);
    EXPECT_THROW(classes_in("struct A { void f(int; };"), std::runtime_error);
}

}  // namespace
}  // namespace tensorpool::architecture
