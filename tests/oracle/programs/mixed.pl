# SPDX-License-Identifier: Apache-2.0
use strict;
use warnings;

sub fibonacci {
    my $n = shift;
    return $n < 2 ? $n : fibonacci($n - 1) + fibonacci($n - 2);
}

while (1) {
    fibonacci(14);
    my %counts;
    $counts{$_ * 7919 % 97}++ for 1 .. 2000;
    my @sorted = sort { $counts{$a} <=> $counts{$b} || $a <=> $b } keys %counts;
    my $text = join ' ', @sorted;
    $text =~ s/(\d+)/$1 * 2/ge for 1 .. 5;
    my @words = map { reverse } split / /, $text;
}
