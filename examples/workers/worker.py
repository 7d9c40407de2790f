"""A worker that cancels a shop's unpaid orders, beside those in other languages. See main.go."""
import tarry

worker = tarry.Worker(tarry.Client(), concurrency=5)


@worker.handle("order.unpaid")
async def unpaid(m: tarry.Message) -> None:
    print(f"Python cancels order {m.body['id']}", flush=True)


worker.run()
