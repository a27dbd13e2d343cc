# At the end: every acknowledged number is there, and the table and its index agree.
import psycopg2

acknowledged = int(open("/tmp/acknowledged").read())
cursor = psycopg2.connect("host=db user=postgres dbname=postgres").cursor()
cursor.execute("SET enable_seqscan = off")
cursor.execute("SELECT count(*) FROM numbers WHERE n BETWEEN 1 AND %s", (acknowledged,))
stored = cursor.fetchone()[0]
cursor.execute("SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off")
cursor.execute("SELECT count(*), coalesce(sum(length(filling)), 0) FROM numbers")
rows, _ = cursor.fetchone()
print("acknowledged", acknowledged, "stored", stored, "rows", rows)
if stored != acknowledged or rows < acknowledged:
    raise SystemExit("LOST")
