-- SPDX-License-Identifier: Apache-2.0
create table t as
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
select i, i * 7919 % 1009 as a, printf('%d-%s', i, hex(i)) as b from n;
create index t_a on t (a);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
select max((select count(*) from t where a = n.i % 1009 and b like '%1' || (n.i % 9) || '%')) from n;
