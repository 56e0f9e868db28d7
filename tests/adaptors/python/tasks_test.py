"""enable_numpy and code that runs in a context, mainly asyncio tasks."""

import asyncio
import contextvars
import unittest

from support import EnabledCase, from_pool, np, tensorpool


async def from_pool_later():
    await asyncio.sleep(0)
    return from_pool()


class TasksInherit(EnabledCase):
    def test_a_copied_context(self):
        context = contextvars.copy_context()
        self.assertTrue(context.run(from_pool))
        tensorpool.disable_numpy()
        self.assertTrue(context.run(from_pool))
        self.assertFalse(contextvars.Context().run(from_pool))
        tensorpool.enable_numpy()

    def test_a_coroutine_and_its_tasks(self):
        async def main():
            tasks = [asyncio.create_task(from_pool_later()) for _ in range(5)]
            return [from_pool(), await from_pool_later(), *await asyncio.gather(*tasks)]

        self.assertEqual(asyncio.run(main()), [True] * 7)

    def test_threads_of_an_event_loop(self):
        async def main():
            loop = asyncio.get_running_loop()
            return [await asyncio.to_thread(from_pool), await loop.run_in_executor(None, from_pool)]

        self.assertEqual(asyncio.run(main()), [True, True])

    def test_callbacks(self):
        async def main():
            loop = asyncio.get_running_loop()
            futures = [loop.create_future() for _ in range(2)]
            loop.call_soon(lambda: futures[0].set_result(from_pool()))
            loop.call_later(0, lambda: futures[1].set_result(from_pool()))
            return await asyncio.gather(*futures)

        self.assertEqual(asyncio.run(main()), [True, True])

    def test_enabling_in_a_task_applies_to_it_and_its_tasks(self):
        tensorpool.disable_numpy()

        async def enabling():
            tensorpool.enable_numpy()
            await asyncio.sleep(0)
            inner = asyncio.create_task(from_pool_later())
            return [from_pool(), await inner, await asyncio.to_thread(from_pool)]

        async def main():
            with_pool, without = await asyncio.gather(enabling(), from_pool_later())
            return with_pool, without, from_pool()

        self.assertEqual(asyncio.run(main()), ([True, True, True], False, False))
        tensorpool.enable_numpy()

    def test_arrays_pass_between_tasks(self):
        async def main():
            queue = asyncio.Queue()

            async def make():
                for i in range(50):
                    await queue.put(np.full(1000, i))

            asyncio.create_task(make())
            return sum([int((await queue.get())[0]) for _ in range(50)])

        self.assertEqual(asyncio.run(main()), sum(range(50)))


if __name__ == "__main__":
    unittest.main()
