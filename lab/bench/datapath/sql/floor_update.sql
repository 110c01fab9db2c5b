UPDATE floor SET status = 'completed', result = '{}', updated = now() WHERE id = $1
