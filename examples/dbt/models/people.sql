select * from anon_sample('census', 2000, seed := 7)
