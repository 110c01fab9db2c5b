package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/store"
)

// table is a table that is partitioned by time.
type table struct {
	name   string
	column string
	step   int32 // days in a partition
	ahead  int32 // days in advance for which partitions are created
}

// tables are the maintained tables.
var tables = []table{
	{"event", "created", 1, 7},
	{"execution_history", "time", 1, 7},
	{"audit_event", "created", 1, 7},
	{"worker_history", "time", 7, 14},
	{"sensor_process_history", "time", 7, 14},
}

// Coverage describes the partitions of one table.
type Coverage struct {
	Table string
	// Partitioned is false for a table without native partitions, as in an existing installation;
	// the other fields are then zero.
	Partitioned bool
	// Default is the default partition. Without one it is empty, and the table refuses rows without a
	// partition.
	Default string
	// Missing is the number of missing partitions.
	Missing int
	// Ahead is the time until the first gap.
	Ahead time.Duration

	gaps []gap // the missing partitions, the nearest first
}

// gap is a missing partition.
type gap struct {
	child        string
	since, until time.Time
}

// ReadCoverage reads how far ahead the partitions of all tables exist, by the database's clock.
func ReadCoverage(ctx context.Context, st *store.Store) ([]Coverage, error) {
	var names []string
	var steps, aheads []int32
	for _, t := range tables {
		names, steps, aheads = append(names, t.name), append(steps, t.step), append(aheads, t.ahead)
	}
	rows, err := st.ReadPartitions(ctx, names, steps, aheads)
	if err != nil {
		return nil, fmt.Errorf("read the partitions: %w", err)
	}
	all := make([]Coverage, len(rows))
	for i, row := range rows {
		all[i] = Coverage{
			Table: row.Name, Partitioned: row.Partitioned, Default: row.Default, Missing: len(row.Missing),
			Ahead: time.Duration(row.Ahead * float64(time.Second)),
		}
		for j, child := range row.Missing {
			all[i].gaps = append(all[i].gaps, gap{child, row.Since[j], row.Until[j]})
		}
	}
	return all, nil
}
