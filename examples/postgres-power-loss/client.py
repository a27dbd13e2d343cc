# Insert one number after the other; the last one that was acknowledged is kept in a file, on a machine that does not fail.
import time

import psycopg2

# A machine that is up again refuses a connection of its last life; one that is not is noticed in two seconds.
SERVER = "host=db user=postgres dbname=postgres connect_timeout=2 keepalives_idle=1 keepalives_interval=1 keepalives_count=1"

last = 0
while True:
    try:
        connection = psycopg2.connect(SERVER)
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE IF NOT EXISTS numbers (n bigint PRIMARY KEY, filling text)")
        cursor.execute("SELECT coalesce(max(n), 0), count(*) FROM numbers")
        stored, count = cursor.fetchone()
        if stored < last or stored != count:
            raise SystemExit(f"LOST: {last} was acknowledged; the last is {stored}, and there are {count}")
        print("begins at", stored, "after", last, flush=True)
        # One that was not acknowledged may be there all the same.
        last = stored
        while True:
            cursor.execute("INSERT INTO numbers VALUES (%s, %s)", (last + 1, "x" * ((last * 97) % 2000)))
            last += 1
            with open("/tmp/acknowledged", "w") as file:
                file.write(str(last))
    except psycopg2.OperationalError:
        time.sleep(0.05)
