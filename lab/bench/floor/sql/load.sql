UPDATE worker_load SET assigned = assigned + $2 WHERE worker = $1
