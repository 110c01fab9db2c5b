SELECT id FROM action WHERE pack_ref = 'bench'
