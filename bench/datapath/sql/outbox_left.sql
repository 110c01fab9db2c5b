SELECT count(*) FROM outbox
